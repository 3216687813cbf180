/** Shows BullMQ queues. `REDIS_URL=redis://127.0.0.1:6379 node examples/bullmq.mjs [port]` */
import { Queue, Worker } from 'bullmq'
import { createDiagnosticsRouter, resolveAdminAuth } from 'relayscope'
import { startNodeServer } from 'relayscope/node'

const connection = { url: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379' }
const emails = new Queue('emails', { connection })
const worker = new Worker('emails', async () => {}, { connection, name: 'mailer' })
await emails.add('welcome', { user: 'ada' })

/** Returns the user of a job, here from its payload. */
const whose = ({ data }) => ({ user_id: data?.user })

// #region plug
import { createBullmqInspectors } from 'relayscope/bullmq'

const inspectors = createBullmqInspectors({
  queues: [emails],
  identify: whose, // returns the user of a job; without it the user is unknown
})
// #endregion

const diagnostics = createDiagnosticsRouter({
  inspectors,
  deployment: { id: null, mode: 'shared_store' },
  auth: resolveAdminAuth({ strict: true, host: '127.0.0.1' }),
  prefix: '/ops/diagnostics',
})
const server = await startNodeServer(diagnostics, { host: '127.0.0.1', port: Number(process.argv[2] ?? 8080) })
console.log(`${server.url}/ops/diagnostics/delivery/commands`)

process.on('SIGTERM', async () => {
  await Promise.all([server.close(), worker.close(), emails.close()])
})
