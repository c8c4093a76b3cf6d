// A whole trade over a client of openapi-fetch, with the types that openapi-typescript made of the document.
//
// The first line of stdin says where the API is and whose program this is.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import createClient from 'openapi-fetch'
import type { components, paths } from './schema.js'

type Offer = components['schemas']['Offer']

const { base_url, client_id, client_secret } = JSON.parse(readFileSync(0, 'utf8')) as Record<
  'base_url' | 'client_id' | 'client_secret',
  string
>
// Tokens are asked for by the application itself: nothing of this client's carries one.
const authorization = createClient<paths>({ baseUrl: base_url })
const api = createClient<paths>({ baseUrl: base_url })
const agent = { 'User-Agent': 'TypeScriptTrade/1.0' }

// What is not asked for by name has to be there in a good answer.
function there<T>(value: T | null | undefined): T {
  assert.ok(value !== null && value !== undefined)
  return value
}

const issued = await authorization.POST('/oauth/token', {
  body: { grant_type: 'client_credentials', client_id, client_secret },
})
const token = there(issued.data).access_token
api.use({
  onRequest({ request }) {
    request.headers.set('Authorization', `Bearer ${token}`)
    return request
  },
})

const me = await api.GET('/v1/me', { params: { header: agent } })
assert.equal(me.data?.app.client_id, client_id)
assert.ok(me.data?.scopes.includes('shipments:write'))

// Offers, page by page.
async function pageOfOffers(after: string | null) {
  const query = { limit: 7, ...(after === null ? {} : { after }) }
  return there((await api.GET('/v1/offers', { params: { header: agent, query } })).data)
}
const offers: Offer[] = []
let cursor: string | null = null
do {
  const page: Awaited<ReturnType<typeof pageOfOffers>> = await pageOfOffers(cursor)
  offers.push(...page.items)
  cursor = page.next
} while (cursor !== null)
assert.ok(offers.length > 7)
assert.equal(new Set(offers.map((offer) => offer.id)).size, offers.length)

// A change that is sent twice happens once.
const stocked = there(offers.find((offer) => offer.status === 'published' && offer.stock !== null))
const change = {
  params: { path: { id: stocked.id }, header: { ...agent, 'Idempotency-Key': randomUUID() } },
  body: { stock: there(stocked.stock) + 1 },
}
const changed = await api.PATCH('/v1/offers/{id}', change)
const repeated = await api.PATCH('/v1/offers/{id}', change)
assert.equal(changed.data?.stock, there(stocked.stock) + 1)
assert.deepEqual(repeated.data, changed.data)
assert.equal(changed.response.headers.get('Idempotent-Replayed'), null)
assert.equal(repeated.response.headers.get('Idempotent-Replayed'), 'true')

// What may be null says so, and nothing else has to be checked.
const prices: number[] = offers.flatMap((offer) => (offer.price === null ? [] : [offer.price.amount]))
assert.ok(prices.length > 0)

// A refusal has a type: its codes are an enumeration.
const unpriced = there(offers.find((offer) => offer.price === null))
const refused = await api.PATCH('/v1/offers/{id}', {
  params: { path: { id: unpriced.id }, header: agent },
  body: { price: { amount: 100, currency: 'PLN' } },
})
assert.equal(refused.response.status, 422)
const refusal = there(refused.error)
const codes: string[] = refusal.errors.map((entry) => entry.code)
assert.deepEqual(codes, ['no_price_row'])
assert.equal(refusal.traceId, refused.response.headers.get('X-Trace-Id'))

// Whoever is to hear of shipments subscribes.
const subscribed = await api.POST('/v1/webhooks', {
  params: { header: { ...agent, 'Idempotency-Key': randomUUID() } },
  body: { url: 'http://127.0.0.1:9/hooks', events: ['order.shipped'] },
})
const subscription = there(subscribed.data)
assert.ok(subscription.secret.length > 20)
const listed = await api.GET('/v1/webhooks', { params: { header: agent } })
assert.ok(listed.data?.items.some((webhook) => webhook.id === subscription.id))

// An order that waits to be shipped, of this seller's items alone.
const paid = await api.GET('/v1/orders', { params: { header: agent, query: { status: 'processing', limit: 200 } } })
let shipped: components['schemas']['Shipment'] | undefined
let orderId = ''
for (const candidate of there(paid.data).items) {
  const order = there((await api.GET('/v1/orders/{id}', { params: { path: { id: candidate.id }, header: agent } })).data)
  assert.equal(order.status, 'processing')
  assert.ok(there(order.buyer).email !== '')
  const shipment = await api.POST('/v1/orders/{id}/shipments', {
    params: { path: { id: order.id }, header: { ...agent, 'Idempotency-Key': randomUUID() } },
    body: { carrier: 'inpost', tracking_number: 'TRANSIT0001' },
  })
  if (shipment.error?.errors[0]?.code === 'multi_seller_order') continue
  shipped = there(shipment.data)
  orderId = order.id
  break
}
assert.equal(there(shipped).order_id, orderId)
assert.equal(there(shipped).carrier, 'inpost')
const known = await api.GET('/v1/orders/{id}', { params: { path: { id: orderId }, header: agent } })
assert.equal(known.data?.status, 'shipped')
assert.equal(known.data?.shipment?.tracking_number, 'TRANSIT0001')
const again = await api.POST('/v1/orders/{id}/shipments', {
  params: { path: { id: orderId }, header: agent },
  body: { carrier: 'inpost', tracking_number: 'TRANSIT0002' },
})
assert.equal(again.error?.errors[0]?.code, 'already_shipped')

const deliveries = await api.GET('/v1/webhooks/{id}/deliveries', {
  params: { path: { id: subscription.id }, header: agent },
})
assert.deepEqual(
  deliveries.data?.items.map((delivery) => delivery.event),
  ['order.shipped'],
)

// What is gone is a 404 that can be told from others by its code.
const gone = { params: { path: { id: subscription.id }, header: agent } }
assert.equal((await api.DELETE('/v1/webhooks/{id}', gone)).response.status, 204)
const missing = await api.DELETE('/v1/webhooks/{id}', gone)
assert.equal(missing.response.status, 404)
assert.equal(missing.error?.errors[0]?.code, 'not_found')

const revoked = await authorization.POST('/oauth/revoke', { body: { token, client_id, client_secret } })
assert.equal(revoked.response.status, 200)
const ended = await api.GET('/v1/me', { params: { header: agent } })
assert.equal(ended.error?.errors[0]?.code, 'unauthorized')
console.log('traded')
