// Node.js: asks the workers over NATS. Its argument is what `btn model put examples/heating.bif` printed; BTN_NATS is the URL of NATS.
import { Pipeline } from '../client-node/pipeline.mjs'

const pipeline = await Pipeline.connect(process.env.BTN_NATS ?? 'nats://127.0.0.1:4222')
try {
  const heating = pipeline.model(process.argv[2])
  const posteriors = await heating.marginals({ season: 'winter', complaint: 'yes' }, ['boiler', 'pump', 'valve'])
  console.log(JSON.stringify({ posteriors }))
} finally {
  await pipeline.close()
}
