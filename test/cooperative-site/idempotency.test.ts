import { describe, expect, it } from 'vitest'
import type { Invocation } from '../../src/contract/invocations.js'
import { createIdempotencyKeys } from '../../src/cooperative-site/idempotency.js'

const answer = { status: 'succeeded' } as Invocation
const call = (key: string, session_id = 's1') => ({
  session_id,
  user_id: 'bob',
  key,
  action: 'archive_note',
  parameters: { id: 7 },
  timeout_ms: 30_000,
})

function createKeys() {
  const clock = { time: 0 }
  const keys = createIdempotencyKeys({ now: () => clock.time })
  /** Claims a key that must be free. */
  const claim = (...given: Parameters<typeof call>) => {
    const claimed = keys.claim(call(...given))
    if ('status' in claimed) throw new Error('the key was taken')
    return claimed
  }
  return { clock, keys, claim }
}

describe('the idempotency keys of a gate', () => {
  it('forget what has ended ten minutes after its claim, and what runs not before it ends', () => {
    const { clock, keys, claim } = createKeys()
    claim('ended').keep(answer, 10)
    const running = claim('running')
    clock.time = 600_000
    expect(() => keys.claim(call('running'))).toThrow(expect.objectContaining({ code: 'idempotency_in_progress' }))
    claim('ended').release()
    expect(keys.size).toBe(1)
    running.keep(answer, 10)
    claim('running').release()
    expect(keys.size).toBe(0)
  })

  it('hold answers of 64 MiB, and forget the oldest beyond', () => {
    const { keys, claim } = createKeys()
    for (let n = 0; n < 65; n++) claim(`k${n}`, `s${n}`).keep(answer, 1_048_576)
    claim('last').release()
    expect(keys.size).toBe(64)
    claim('k0', 's0').release()
    expect(keys.claim(call('k1', 's1'))).toBe(answer)
  })

  it('refuse another key while a thousand calls of the session run', () => {
    const { claim } = createKeys()
    for (let n = 0; n < 1_000; n++) claim(`k${n}`)
    expect(() => claim('one more')).toThrow(expect.objectContaining({ code: 'connector_unavailable' }))
    claim('one more', 's2').release()
  })
})
