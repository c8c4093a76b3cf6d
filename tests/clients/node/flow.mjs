// The flows of an integrator's program, with openid-client as its documentation shows it.
//
// The first line of stdin says whose program this is; where the seller's browser has to go is printed, and where it came back
// to is read from the next line.
import assert from 'node:assert/strict'
import { webcrypto } from 'node:crypto'
import { createInterface } from 'node:readline/promises'
import * as client from 'openid-client'

// Node 18 has it, but not under this name.
globalThis.crypto ??= webcrypto

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
const next = async () => (await lines.next()).value
const { issuer, client_id, client_secret, redirect_uri, scope } = JSON.parse(await next())
const isPublic = client_secret === ''

const config = await client.discovery(
  new URL(issuer),
  client_id,
  isPublic ? undefined : client_secret,
  isPublic ? client.None() : client.ClientSecretBasic(client_secret),
  // The server under test listens on a loopback address without TLS.
  { algorithm: 'oauth2', execute: [client.allowInsecureRequests] },
)
assert.equal(config.serverMetadata().issuer, issuer)
assert.ok(config.serverMetadata().supportsPKCE())

async function me(accessToken) {
  const response = await fetch(`${issuer}/v1/me`, {
    headers: { authorization: `Bearer ${accessToken}`, 'user-agent': 'NodeFlow/1.0' },
  })
  return { status: response.status, body: await response.json() }
}

async function consented() {
  const pkceCodeVerifier = client.randomPKCECodeVerifier()
  const expectedState = client.randomState()
  const url = client.buildAuthorizationUrl(config, {
    redirect_uri,
    scope,
    state: expectedState,
    code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
    code_challenge_method: 'S256',
  })
  console.log(`authorize ${url.href}`)
  const returned = new URL(await next())
  return client.authorizationCodeGrant(config, returned, { pkceCodeVerifier, expectedState })
}

const first = await consented()
assert.equal(first.token_type, 'bearer')
assert.equal(first.scope, scope)
assert.equal(first.expiresIn() > 43000, true)
assert.equal((await me(first.access_token)).body.app.client_id, client_id)

// The guide's way to send the key of a refresh.
const key = webcrypto.randomUUID()
config[client.customFetch] = (url, options) =>
  fetch(url, { ...options, headers: { ...options.headers, 'Idempotency-Key': key } })
const second = await client.refreshTokenGrant(config, first.refresh_token)
assert.notEqual(second.refresh_token, first.refresh_token)
assert.equal((await client.refreshTokenGrant(config, first.refresh_token)).refresh_token, second.refresh_token)
assert.equal((await me(second.access_token)).status, 200)

await client.tokenRevocation(config, second.refresh_token)
assert.equal((await me(second.access_token)).status, 401)
await assert.rejects(client.refreshTokenGrant(config, second.refresh_token), { error: 'invalid_grant' })

if (isPublic) {
  await assert.rejects(client.clientCredentialsGrant(config), { error: 'invalid_client' })
} else {
  const own = await client.clientCredentialsGrant(config, { scope })
  assert.equal(own.refresh_token, undefined)
  assert.equal((await me(own.access_token)).status, 200)
}

// The seller says no this time.
await assert.rejects(consented(), { error: 'access_denied' })
console.log('done')
process.exit(0)
