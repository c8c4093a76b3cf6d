"""Verifies deliveries with the library of Standard Webhooks: a line of JSON for each, and a line about it."""

import json
import sys

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

for line in sys.stdin:
    delivery = json.loads(line)
    try:
        Webhook(delivery["secret"]).verify(delivery["body"], delivery["headers"])
        print("genuine")
    except WebhookVerificationError as error:
        print(f"refused: {error}")
