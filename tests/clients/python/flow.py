"""The flows of an integrator's program, with Authlib as its documentation shows it.

The first line of stdin says whose program this is; where the seller's browser has to go is printed, and where it came back to
is read from the next line.
"""

import json
import os
import sys
from urllib.parse import parse_qsl, urlsplit

# The server under test listens on a loopback address without TLS.
os.environ["AUTHLIB_INSECURE_TRANSPORT"] = "1"

import requests
from authlib.common.security import generate_token
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session

asked = json.loads(sys.stdin.readline())
issuer, redirect_uri, scope = asked["issuer"], asked["redirect_uri"], asked["scope"]
is_public = asked["client_secret"] == ""

metadata = requests.get(f"{issuer}/.well-known/oauth-authorization-server", timeout=10).json()
assert metadata["issuer"] == issuer, metadata
assert "S256" in metadata["code_challenge_methods_supported"], metadata


def session(**more):
    opened = OAuth2Session(
        asked["client_id"],
        None if is_public else asked["client_secret"],
        scope=scope,
        redirect_uri=redirect_uri,
        revocation_endpoint=metadata["revocation_endpoint"],
        token_endpoint_auth_method="none" if is_public else "client_secret_basic",
        revocation_endpoint_auth_method="none" if is_public else "client_secret_basic",
        code_challenge_method="S256",
        **more,
    )
    opened.headers["User-Agent"] = "PythonFlow/1.0"
    return opened


def refused(error, call):
    try:
        call()
    except OAuthError as refusal:
        assert refusal.error == error, refusal
    else:
        raise AssertionError(f"{error} was expected")


def decided(opened):
    """Where the seller's browser came back to, with what the exchange needs."""
    verifier = generate_token(64)
    url, state = opened.create_authorization_url(metadata["authorization_endpoint"], code_verifier=verifier)
    print(f"authorize {url}", flush=True)
    return sys.stdin.readline().strip(), state, verifier


def consented(opened):
    returned, state, verifier = decided(opened)
    return opened.fetch_token(metadata["token_endpoint"], authorization_response=returned, state=state, code_verifier=verifier)


def me(opened):
    return opened.get(f"{issuer}/v1/me")


program = session()
first = consented(program)
assert first["scope"] == scope and first["token_type"] == "Bearer", first
assert me(program).json()["app"]["client_id"] == asked["client_id"]

key = {"Idempotency-Key": generate_token(32)}
second = program.refresh_token(metadata["token_endpoint"], timeout=35, headers=key)
assert second["refresh_token"] != first["refresh_token"]
again = program.refresh_token(metadata["token_endpoint"], first["refresh_token"], headers=key)
assert again["refresh_token"] == second["refresh_token"], again
assert me(program).status_code == 200

answer = program.revoke_token(metadata["revocation_endpoint"], second["refresh_token"], "refresh_token")
assert answer.status_code == 200, answer.text
assert me(program).status_code == 401
refused("invalid_grant", lambda: program.refresh_token(metadata["token_endpoint"], second["refresh_token"]))

own = session()
if is_public:
    refused("invalid_client", lambda: own.fetch_token(metadata["token_endpoint"], grant_type="client_credentials"))
else:
    token = own.fetch_token(metadata["token_endpoint"], grant_type="client_credentials")
    assert "refresh_token" not in token
    assert me(own).status_code == 200

# The seller says no this time.
returned, state, _ = decided(session())
returned = dict(parse_qsl(urlsplit(returned).query))
assert (returned["error"], returned["state"], returned["iss"]) == ("access_denied", state, issuer), returned
print("done", flush=True)
