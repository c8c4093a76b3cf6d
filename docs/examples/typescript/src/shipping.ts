/** The work: orders are read as they are now, and brought on their way if they are paid. */

import { randomUUID } from "node:crypto";
import { type Api, type Order, Refused, type Shipment } from "./api.js";
import { log } from "./log.js";
import { PAUSE_AFTER_FAILURE, Unavailable } from "./sending.js";
import type { Store, Task, Write } from "./store.js";
import { NoToken } from "./tokens.js";

export class Shipping {
  readonly #api: Api;
  readonly #store: Store;

  constructor(api: Api, store: Store) {
    this.#api = api;
    this.#store = store;
  }

  /** Looks at orders. A webhook tells that something happened; the order itself tells what is to be done. */
  async work(tasks: readonly Task[]): Promise<void> {
    let orders: Order[] = [];
    const unread = tasks.map((task) => task.orderId).filter((id) => this.#store.parcel(id) === undefined);
    // All with one request, which the limit counts.
    if (unread.length > 0) orders = (await this.#api.get<{ items: Order[] }>(`/v1/orders?ids=${unread.join(",")}`)).items;
    const byId = new Map(orders.map((order) => [order.id, order]));
    for (const task of tasks) {
      try {
        await this.#ship(task, byId.get(task.orderId));
      } catch (error) {
        // Without a token, or the scope that the answer names, no other order is shipped either.
        if (error instanceof NoToken || (error instanceof Refused && error.status === 403)) throw error;
        // Whatever it is, such as an order that cannot be packed, it delays no other order.
        const isKnown = error instanceof Unavailable || error instanceof Refused;
        log.error(`order ${task.orderId}: ${isKnown || !(error instanceof Error) ? String(error) : error.stack}`);
        this.#store.putOff(task, PAUSE_AFTER_FAILURE);
      }
    }
  }

  async #ship(task: Task, order: Order | undefined): Promise<void> {
    let parcel = this.#store.parcel(task.orderId);
    if (parcel === undefined) {
      if (order?.status !== "processing") {
        // Not paid yet: its `order.paid` will come. Otherwise there is nothing left to do.
        log.info(`order ${task.orderId} is ${order?.status ?? "not there"}`);
        return this.#over(task);
      }
      if (order.shipped_by === "marketplace") {
        log.info(`order ${task.orderId} is shipped by the marketplace`);
        return this.#over(task);
      }
      // Key and bytes are stored before they are sent. After a crash the very same request is sent again: then the answer
      // tells what became of the first one.
      parcel = { idempotencyKey: randomUUID(), body: JSON.stringify(pack(order)) };
      this.#store.keep(task.orderId, parcel);
    }
    try {
      const shipment = await this.#api.write<Shipment>(`/v1/orders/${task.orderId}/shipments`, parcel);
      this.#over(task);
      log.info(`order ${task.orderId} is shipped: ${shipment.carrier_name} ${shipment.tracking_number}`);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (error.status === 400 && error.paths.some((path) => path !== "")) {
        // These bytes were never done. When `pack` is mended the order is packed again.
        this.#store.forget(task.orderId);
      }
      if (error.status !== 409) throw error;
      await this.#conflict(task, parcel, error);
    }
  }

  /** The order is not what it was when it was read: read it again, and decide. */
  async #conflict(task: Task, parcel: Write, refusal: Refused): Promise<void> {
    const order = await this.#api.get<Order>(`/v1/orders/${task.orderId}`);
    const number = order.order_number;
    const ours = (JSON.parse(parcel.body) as Parcel).tracking_number;
    switch (refusal.code) {
      case "order_unpaid":
        log.info(`order ${number} is not paid after all`);
        return this.#store.putOff(task, PAUSE_AFTER_FAILURE);
      case "already_shipped":
        if (order.shipment?.tracking_number === ours) log.info(`order ${number} is shipped already, by ourselves`);
        else log.warn(`order ${number} was shipped by somebody else: keep parcel ${ours} back`);
        break;
      case "order_cancelled":
        log.warn(`order ${number} was cancelled: keep its parcel back`);
        break;
      case "multi_seller_order":
        // The parcel is kept, so that the order is not packed again.
        log.info(`order ${number} holds other sellers' items too: the marketplace ships it`);
        return this.#store.done(task);
      default:
        log.error(`order ${number} cannot be shipped: ${refusal.code}`);
    }
    this.#over(task);
  }

  #over(task: Task): void {
    this.#store.forget(task.orderId);
    this.#store.done(task);
  }
}

interface Parcel {
  readonly carrier: string;
  readonly tracking_number: string;
}

/**
 * Stands for the warehouse: it packs the order's `items` for its `shipping_address` and names the parcel. After a crash it may be
 * asked again: it names the same parcel. For an order with `is_test` it sends no goods.
 */
function pack(order: Order): Parcel {
  return { carrier: "other", tracking_number: `PARCEL-${order.id.replaceAll("-", "")}` };
}
