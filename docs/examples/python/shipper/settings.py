"""What the program is told by its environment."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    api_url: str
    client_id: str
    client_secret: str
    # Set where the program works for another seller: what the seller's consent gave. Without it, it works for its owner.
    refresh_token: str | None
    # Where the marketplace reaches the receiver, and the local port behind that address.
    webhook_url: str
    port: int
    # The file of everything that has to survive a restart.
    state: str
    catch_up_seconds: float

    @classmethod
    def from_environment(cls) -> "Settings":
        return cls(
            api_url=os.environ["API_URL"].rstrip("/"),
            client_id=os.environ["CLIENT_ID"],
            client_secret=os.environ["CLIENT_SECRET"],
            refresh_token=os.environ.get("REFRESH_TOKEN"),
            webhook_url=os.environ["WEBHOOK_URL"],
            port=int(os.environ.get("PORT", "9000")),
            state=os.environ.get("STATE", "shipper.db"),
            catch_up_seconds=float(os.environ.get("CATCH_UP_SECONDS", "300")),
        )
