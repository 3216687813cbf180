/** Holds the inspectors of queues to the contract of every delivery inspector, with and without knowing whose a job is. */

import type { Queue, Worker } from 'bullmq'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createBullmqInspectors, type Identify } from '../../src/bullmq/index.js'
import { deliveryContract } from '../../src/testing/delivery.js'
import { ASK, FIRST } from '../contract/clock.js'
import { get } from '../redis/router.js'
import { type Server, startServer } from '../redis/server.js'
import { soon } from '../redis/wait-for.js'
import { commandsOf, describeBullmq, observe, statusPath } from './bullmq-world.js'

interface Payload {
  user?: string
  client?: string
}

const identify: Identify = ({ data }) => {
  const { user, client } = data as Payload
  return { user_id: user, client_id: client }
}

/** Jobs of two users, one of which names a client, and jobs without a user. */
const payloadOf = (i: number): Payload =>
  i % 3 === 0 ? {} : i % 3 === 1 ? { user: 'ada' } : { user: `user-${i % 2}`, client: 'laptop' }

describeBullmq('the inspectors of queues', (bullmq) => {
  let server: Server
  let queues: Queue[]
  let worker: Worker
  beforeAll(async () => {
    server = await startServer()
    const connection = { host: '127.0.0.1', port: server.port }
    queues = ['emails', 'odd/näme %2F'].map((name) => new bullmq.Queue(name, { connection }))
    worker = new bullmq.Worker(
      'emails',
      async ({ id }) => (Number(id) % 5 === 0 ? Promise.reject(new Error('no')) : null),
      {
        connection,
      },
    )
    for (const [i, queue] of queues.entries()) {
      await queue.addBulk(
        Array.from({ length: 30 }, (_, n) => ({
          name: 'work',
          data: payloadOf(n),
          opts: { delay: (n % 2) * 1e6, attempts: 1 + (n % 3), priority: i * (n % 4) },
        })),
      )
      await queue.add('work', payloadOf(2), { jobId: 'a/b %25 ü\u202e' })
    }
    await soon(async () => expect(await queues[0]?.getJobCountByTypes('wait', 'active')).toBe(0))
  })
  afterAll(async () => {
    await worker?.close()
    await Promise.all(queues?.map((queue) => queue.close()))
    await server?.stop()
  })

  const known = { commands: [{ user_id: 'user-0', client_id: 'laptop', command_id: 'emails:3' }] }
  for (const { name, run } of deliveryContract(() => createBullmqInspectors({ queues, identify }).delivery, known))
    it(`${name}, with identify`, async () => void (await run()))
  for (const { name, run } of deliveryContract(() => createBullmqInspectors({ queues }).delivery))
    it(`${name}, without identify`, async () => void (await run()))

  it('says whose a job is where the host does, and is asked for it by that', async () => {
    const router = observe({ queues, identify })
    const ofAda = await commandsOf(router, '?user_id=ada')
    expect(ofAda).toHaveLength(20)
    expect(ofAda.every(({ user_id, client_id }) => user_id === 'ada' && client_id === null)).toBe(true)
    expect(await commandsOf(router, '?client_id=laptop&user_id=user-0&scope_id=emails')).toHaveLength(6)
    // The scope replaces an unknown client, and nothing else.
    expect((await get(router, statusPath('emails', '2', 'ada', 'emails'))).body).toMatchObject({
      user_id: 'ada',
      client_id: null,
    })
    for (const [user, client] of [
      ['emails', 'emails'],
      ['ada', 'ada'],
      ['ada', 'laptop'],
    ])
      expect((await get(router, statusPath('emails', '2', user, client))).status).toBe(404)
  })

  it('finds no job by user without identify', async () => {
    const router = observe({ queues })
    expect(await commandsOf(router, '?user_id=ada')).toEqual([])
    // They are not looked through for what none of them is.
    const { delivery } = createBullmqInspectors({ queues })
    for (const filter of [{ user_id: 'ada' }, { client_id: 'laptop' }, { overdue: true }])
      expect(await delivery.listCommands?.(filter, FIRST, ASK)).toMatchObject({ has_more: false, examined: 0 })
    expect(await commandsOf(router, '?overdue=true')).toEqual([])
    expect(await commandsOf(router, '?overdue=false&scope_id=emails')).toHaveLength(31)
    expect(await commandsOf(router, '?scope_id=none')).toEqual([])
  })
})
