/** Two BullMQ queues with workers, one of which throws. Starts the machine's own `redis-server` for itself. */
import { Queue, Worker } from 'bullmq'
import { createBullmqInspectors } from 'relayscope/bullmq'
import { openStore } from '../store.mjs'
import { every } from './every.mjs'

const USERS = ['ada', 'grace', 'linus']

export async function open({ signal }) {
  const store = await openStore('embedded')
  const connection = { url: store.url }
  const [emails, exports] = ['emails', 'exports'].map((name) => new Queue(name, { connection }))
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms).unref())
  const workers = [
    new Worker('emails', () => wait(50), { connection, name: 'mailer' }),
    new Worker(
      'exports',
      async ({ data }) => {
        await wait(1_500)
        if (data.user === 'linus') throw new Error('The disk is full.')
      },
      { connection, name: 'exporter' },
    ),
  ]
  for (const part of [emails, exports, ...workers]) part.on('error', () => {})
  const options = { attempts: 2, backoff: { type: 'fixed', delay: 1_000 } }
  let n = 0
  const add = async () => {
    const data = { user: USERS[n++ % USERS.length] }
    await emails.add('welcome', data)
    await exports.add('export', data, options)
  }
  for (let i = 0; i < 6; i++) await add()
  await emails.add('reminder', { user: 'ada' }, { delay: 3_600_000 })
  every(2_000, signal, add)
  return {
    about: 'two BullMQ queues; each export of linus fails',
    composition: {
      inspectors: createBullmqInspectors({
        queues: [emails, exports],
        identify: ({ data }) => ({ user_id: data?.user }),
      }),
      deployment: { id: 'jobs', mode: 'shared_store' },
    },
    async close() {
      await Promise.all(workers.map((worker) => worker.close(true)))
      await Promise.all([emails.close(), exports.close()])
      await store.close()
    },
  }
}
