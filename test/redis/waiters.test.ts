/** The waiters of a node, over a store whose replies the test decides. */
import { expect, it } from 'vitest'
import type { Attempts } from '../../src/redis/delivery/attempts.js'
import { createMailboxes } from '../../src/redis/delivery/mailboxes.js'
import type { DeliveryRun } from '../../src/redis/delivery/run.js'
import type { LocalWaiter } from '../../src/redis/delivery/waiters.js'

const waiterOf = (client_id: string, instance_id: string, order: number): LocalWaiter => ({
  user_id: 'ann',
  client_id,
  instance_id,
  mailbox: `ann:${client_id}`,
  shard: 0,
  order: String(order),
  deliver: () => {},
  queue: [],
  open: new Set(),
  isPumping: false,
})

it('keeps a waiter among hundreds that has replaced one whose attempt could not be fetched', async () => {
  const [former, newer] = [waiterOf('desk', 'one', 1_000), waiterOf('desk', 'two', 1_001)]
  let lose = (_error: Error) => {}
  const lost = new Promise<never>((_, reject) => {
    lose = reject
  })
  async function run(step: string, _shard: number, { order }: { order?: string }) {
    if (step === 'fetch') return lost
    return { answer: step === 'attach' ? `attached\0${order === former.order ? 'ann:desk:c1 1' : ''}` : '' }
  }
  const mailboxes = createMailboxes({
    delivery: { run, count() {} } as unknown as DeliveryRun,
    attempts: { knows: () => false, mark: () => 0 } as unknown as Attempts,
    connections: undefined,
    maxDeliveriesPerClient: 8,
    holdsLease: () => true,
    storeNow: () => 0,
    onChange() {},
    onError() {},
  })
  for (let i = 0; i < 200; i++) await mailboxes.attach(waiterOf(`client-${i}`, 'one', i))
  await mailboxes.attach(former)
  await mailboxes.attach(newer)
  lose(new Error('the reply is lost'))
  await new Promise(setImmediate)
  await mailboxes.pass()
  expect(mailboxes.find(newer.mailbox)).toBe(newer)
})
