"""How probable is lung cancer in a smoker whose X-ray is abnormal? BTN_GATEWAY is the URL of the gateway."""

import os
import pathlib

from basetensor import Client

with Client(os.environ.get("BTN_GATEWAY", "http://127.0.0.1:8080")) as client:
    posteriors = client.marginals(
        pathlib.Path("examples/asia.json"), evidence={"smoke": "yes", "xray": "abnormal"}, targets=["lung"]
    )
print("P(lung = yes) =", posteriors["lung"]["yes"])
