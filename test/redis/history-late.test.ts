/**
 * Appends with a spilled payload that arrive late or twice: a message is retained once, and no payload is left over.
 */
import { expect, it } from 'vitest'
import { APPEND_MESSAGE, FORGET_PAYLOADS, PREPARE_PAYLOAD } from '../../src/redis/history/facility.js'
import { runScript } from '../../src/redis/store/script.js'
import { createStore } from '../../src/redis/store/store.js'
import { createClock } from '../contract/clock.js'
import { describeNode } from './dispatcher-node.js'

const MANY = 1_000_000
const about = { stream: 'users/ann/log', message_id: 'm', user: 'ann' }
const { user: user_id, ...named } = about
const message = { ...named, user_id, client_id: 'c', instance_id: 'i', kind: 'event' }

let shards = 0

describeNode('an append with a spilled payload', ({ client }) => {
  function openShard() {
    const store = createStore({ client: client(), deploymentId: `late${++shards}`, shards: 1, now: createClock().now })
    const loose = store.key(0, 'spilled', 'loose')
    return {
      /** Whether the payload is registered as one without a message. */
      isLoose: async (ref: string) => (await store.command(['ZSCORE', loose, ref], loose)) !== null,
      prepare: (ref: string) => runScript(store, PREPARE_PAYLOAD, 0, { ...about, ref, spared: 60_000 }),
      /** Forgets payloads that were deleted because they had no message. */
      forget: (...refs: string[]) => runScript(store, FORGET_PAYLOADS, 0, { refs }),
      append: (ref: string, attempt: string) =>
        runScript(store, APPEND_MESSAGE, 0, {
          ...about,
          fields: JSON.stringify({ ...message, externalized: { ref, bytes: 100 } }),
          content: '{"payload":null}',
          attempt,
          size: 1_000,
          ref,
          ref_bytes: 100,
          handed_out: 0,
          max_per_stream: MANY,
          max_messages: MANY,
          max_per_user: MANY,
          max_bytes: MANY,
          max_bytes_per_user: MANY,
          max_spilled_bytes: MANY,
          max_spilled_bytes_per_user: MANY,
        }),
    }
  }

  it('that arrives twice is one attempt, and keeps its payload', async () => {
    const { append, isLoose, prepare } = openShard()
    await prepare('r1')
    const first = await append('r1', 'x')
    expect(first).toMatchObject({ isNew: true, isGivenUp: false })
    expect(await append('r1', 'x')).toEqual(first)
    expect(await isLoose('r1')).toBe(false)
  })

  it('of a message that another append retained first leaves its payload to a later cleanup', async () => {
    const { append, forget, isLoose, prepare } = openShard()
    await prepare('r1')
    await prepare('r2')
    await forget('r2')
    const first = await append('r1', 'x')
    expect(await append('r2', 'y')).toMatchObject({ isNew: false, row: first.row })
    expect([await isLoose('r1'), await isLoose('r2')]).toEqual([false, true])
  })

  it('that timed out so long ago that its payload may be deleted retains nothing', async () => {
    const { append, forget, prepare } = openShard()
    await prepare('r1')
    await forget('r1')
    expect(await append('r1', 'x')).toMatchObject({ isGivenUp: true, row: null })
  })
})
