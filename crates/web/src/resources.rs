//! Resources as JSON for both listeners: what a response shows of money, offers and orders, and how the
//! marketplace feeds an offer.

use kernel::{CURRENCY, MAX_AMOUNT, Money, OfferId};
use offers::{Offer, OfferInput, OfferStatus, Product, Stock, StockAdjustment};
use orders::{Buyer, DeliveryPoint, Invoice, OrderItem, OrderStatus, ShippingAddress};

use crate::decode::{Shape, integer, object, one_of, parsed, text};
use crate::schema::{self, Node, date_time, string, uri, uuid};
use crate::timestamps::Timestamp;
use crate::view::View;

crate::view! {
    /// `{amount, currency}`
    pub MoneyView of money: Money, named "Money", "An amount of money." {
        "amount": schema::integer(0, MAX_AMOUNT).describe("In the minor unit: grosze.").example(12_900)
            => money.amount(),
        "currency": string().describe("ISO 4217. Currently always `PLN`.").example(CURRENCY)
            => CURRENCY,
    }
}

/// An amount to be set. The marketplace trades in one currency (D24).
pub fn money() -> impl Shape<Value = Money> {
    object!(
        amount: required(integer(0..=MAX_AMOUNT).checked(Money::pln).describe("In the minor unit: grosze.")),
        currency: required(one_of(&[()], |()| CURRENCY).describe("ISO 4217.").named("Currency"))
        => { let () = currency; amount }
    )
    .describe("A new price.")
    .named("NewPrice")
}

crate::view! {
    /// Contract: Offer.
    pub OfferView<'a> of offer: &'a Offer, named "Offer", "A product that the seller lists." {
        "id": uuid() => offer.id.uuid(),
        "title": string() => offer.product.title,
        "handle": string().describe("The slug of the product's page.") => offer.product.handle,
        "status": offer_status() => offer.status.as_str(),
        "price": MoneyView::schema().or_null().describe("`null` if the offer has no PLN price.")
            => offer.price.map(|price| MoneyView::whole(price.money)),
        "stock": schema::integer(0, i32::MAX.into()).or_null().describe("Pieces; `null` if the offer has no inventory level.")
            => offer.stock.map(Stock::get),
        "ean": string().or_null() => offer.product.ean,
        "brand": string().or_null() => offer.product.brand,
        "signature": string().or_null().describe("Catalogue id, brand and EAN, separated by `|`.") => offer.product.signature,
        "thumbnail": uri().or_null() => offer.product.thumbnail,
        "url": uri().describe("The product's page.") => offer.product.url,
        "external_id": string().or_null().describe("The seller's own name for it, such as a SKU; not unique.")
            => offer.external_id,
        "created_at": date_time() => Timestamp::new(offer.created_at),
        "updated_at": date_time().describe("Changes whenever another field does.") => Timestamp::new(offer.updated_at),
        "etag": string().describe("The entity tag of this state, quotes included, for `If-Match`.") => offer.etag(),
    }
}

/// An offer as the marketplace feeds it: a nullable field may be absent, which means null (D99). The id is
/// known from the path of a PUT; a line of an import has it (D100).
pub fn offer_input(id: Option<OfferId>) -> impl Shape<Value = OfferInput> {
    object!(
        id: unless_known(parsed(), id),
        title: required(text().checked(offers::title)),
        handle: required(text().checked(offers::handle)),
        status: required(one_of(&OfferStatus::ALL, OfferStatus::as_str)),
        price: nullable(money()),
        stock: nullable(stock()),
        ean: nullable(text().checked(offers::short_text)),
        brand: nullable(text().checked(offers::short_text)),
        signature: nullable(text().checked(offers::short_text)),
        thumbnail: nullable(text().checked(offers::web_address)),
        url: required(text().checked(offers::web_address))
        => {
            let product = Product { title, handle, ean, brand, signature, thumbnail, url };
            OfferInput { id, product, status, price, stock }
        }
    )
}

pub fn offer_status() -> Node {
    string()
        .one_of(OfferStatus::ALL.map(OfferStatus::as_str))
        .describe("`proposed`: awaits moderation. `rejected`: rejected by moderation and hidden.")
        .named("OfferStatus")
}

/// Pieces to be added to the stock, or taken away.
pub fn stock_adjustment() -> impl Shape<Value = StockAdjustment> {
    integer(-StockAdjustment::MOST..=StockAdjustment::MOST).checked(StockAdjustment::new)
}

/// A stock to be set.
pub fn stock() -> impl Shape<Value = Stock> {
    integer(0..=i64::from(i32::MAX)).checked(Stock::new)
}

crate::view! {
    pub BuyerView<'a> of buyer: &'a Buyer, named "Buyer", "The buyer. Personal data." {
        "name": string().or_null() => buyer.name,
        "email": string().or_null() => buyer.email,
        "phone": string().or_null() => buyer.phone,
    }
}

crate::view! {
    pub ShippingAddressView<'a> of address: &'a ShippingAddress,
        named "ShippingAddress", "The delivery address. Personal data."
    {
        "line1": string().or_null() => address.line1,
        "line2": string().or_null() => address.line2,
        "postal_code": string().or_null() => address.postal_code,
        "city": string().or_null() => address.city,
        "country": string().example("PL") => address.country,
    }
}

crate::view! {
    pub DeliveryPointView<'a> of point: &'a DeliveryPoint,
        named "DeliveryPoint", "The parcel locker or shop where the buyer collects the order. Personal data."
    {
        "id": string().describe("The carrier's name for it.").example("WAW01M") => point.id,
        "name": string().or_null() => point.name,
        "line1": string().or_null() => point.line1,
        "line2": string().or_null() => point.line2,
        "postal_code": string().or_null() => point.postal_code,
        "city": string().or_null() => point.city,
        "country": string().or_null().example("PL") => point.country,
    }
}

crate::view! {
    pub InvoiceView<'a> of invoice: &'a Invoice,
        named "Invoice", "The buyer asks for an invoice with these data, which may all be `null`. Personal data."
    {
        "company": string().or_null() => invoice.company,
        "tax_id": string().or_null() => invoice.tax_id,
        "line1": string().or_null() => invoice.line1,
        "line2": string().or_null() => invoice.line2,
        "postal_code": string().or_null() => invoice.postal_code,
        "city": string().or_null() => invoice.city,
        "country": string().or_null().example("PL") => invoice.country,
    }
}

crate::view! {
    /// Contract: `OrderItem`. An item has the status of its order, because an order is shipped as a whole.
    pub OrderItemView<'a> of (item, status): (&'a OrderItem, OrderStatus), named "OrderItem", "A line of an order." {
        "id": uuid().describe("Currently the offer's id.") => item.offer.uuid(),
        "offer_id": uuid() => item.offer.uuid(),
        "title": string().or_null() => item.title,
        "handle": string().or_null() => item.handle,
        "sku": string().or_null().describe("A text of the marketplace; not the offer's `external_id`.") => item.sku,
        "quantity": schema::integer(1, i32::MAX.into()) => item.quantity,
        "unit_price": MoneyView::schema().or_null() => item.unit_price.map(MoneyView::whole),
        "fulfillment_status": order_status().describe("Currently the order's, since an order is shipped as a whole.")
            => status.as_str(),
    }
}

pub fn order_status() -> Node {
    string()
        .one_of(OrderStatus::ALL.map(OrderStatus::as_str))
        .describe("`pending`: not paid. `processing`: paid, to be shipped.")
        .named("OrderStatus")
}
