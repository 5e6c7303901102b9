"""Python: asks the gateway about the file itself. BTN_GATEWAY is its URL; the client is clients/python."""

import json
import os
import pathlib

from basetensor import Client

model = pathlib.Path(__file__).parent.parent / "heating.bif"
with Client(os.environ.get("BTN_GATEWAY", "http://127.0.0.1:8080")) as client:
    posteriors = client.marginals(
        model, evidence={"season": "winter", "complaint": "yes"}, targets=["boiler", "pump", "valve"]
    )
print(json.dumps({"posteriors": posteriors}))
