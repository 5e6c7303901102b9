// The network of examples/asia.json (Lauritzen and Spiegelhalter), for a first look.
export default {
  "basetensor_model": 1,
  "description": "The chest clinic of Lauritzen and Spiegelhalter (1988), as asia.uai has it, with names.",
  "bayes": true,
  "variables": [
    {"name": "asia", "states": ["no", "yes"]},
    {"name": "tub", "states": ["no", "yes"]},
    {"name": "smoke", "states": ["no", "yes"]},
    {"name": "lung", "states": ["no", "yes"]},
    {"name": "bronc", "states": ["no", "yes"]},
    {"name": "either", "states": ["no", "yes"]},
    {"name": "xray", "states": ["normal", "abnormal"]},
    {"name": "dysp", "states": ["no", "yes"]}
  ],
  "factors": [
    {"scope": [0], "dense": {"values": [0.99, 0.01]}},
    {"scope": [0, 1], "dense": {"values": [0.99, 0.01, 0.95, 0.05]}},
    {"scope": [2], "dense": {"values": [0.5, 0.5]}},
    {"scope": [2, 3], "dense": {"values": [0.99, 0.01, 0.9, 0.1]}},
    {"scope": [2, 4], "dense": {"values": [0.7, 0.3, 0.4, 0.6]}},
    {"scope": [1, 3, 5], "dense": {"values": [1, 0, 0, 1, 0, 1, 0, 1]}},
    {"scope": [5, 6], "dense": {"values": [0.95, 0.05, 0.02, 0.98]}},
    {"scope": [4, 5, 7], "dense": {"values": [0.9, 0.1, 0.3, 0.7, 0.2, 0.8, 0.1, 0.9]}}
  ]
}
