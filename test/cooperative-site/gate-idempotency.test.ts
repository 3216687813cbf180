/** The idempotency keys of a gate: one key runs one call of one viewer once. */

import { describe, expect, it } from 'vitest'
import { createIdempotencyStore } from '../../src/cooperative-site/index.js'
import type { IdempotencyClaim } from '../../src/internal/contract/invocations.js'
import { Refusal } from '../../src/internal/refusal.js'
import { deferred } from './deferred.js'
import { createWorld, refusal, START } from './gate-world.js'

describe('an idempotency key', () => {
  const key = { idempotency_key: 'k1' }

  it('runs a call once and answers repeats with the stored answer', async () => {
    const { world, invoke } = createWorld()
    const first = await invoke(key)
    expect(await invoke(key)).toBe(first)
    expect(world.calls).toHaveLength(1)
    world.time += 600_000
    await invoke(key)
    expect(world.calls).toHaveLength(2)
  })

  it('maps to the same command on every node, and to another one for another viewer', async () => {
    const commands = new Set<string>()
    for (const input of [key, key, { ...key, viewer: { user_id: 'carol' } }, { idempotency_key: 'k2' }]) {
      const { world, invoke } = createWorld()
      await invoke(input)
      commands.add(world.calls[0]?.[1].command_id as string)
    }
    expect(commands.size).toBe(3)
    for (const command of commands) expect(command).toMatch(/^[0-9a-f]{32}$/)
  })

  it('is refused for another call, but free for another viewer', async () => {
    const { world, invoke } = createWorld()
    await invoke(key)
    await expect(invoke({ ...key, parameters: { id: 8 } })).rejects.toMatchObject(refusal('idempotency_key_reused'))
    await invoke({ ...key, viewer: { user_id: 'carol' } })
    await invoke({ ...key, parameters: { id: 7 } })
    expect(world.calls).toHaveLength(2)
  })

  it('is refused with another timeout, and accepted with the default spelled out', async () => {
    const { world, invoke } = createWorld({ timeoutMs: 100 })
    const first = await invoke(key)
    expect(await invoke({ ...key, timeout_ms: 100 })).toBe(first)
    await expect(invoke({ ...key, timeout_ms: 200 })).rejects.toMatchObject(refusal('idempotency_key_reused'))
    expect(world.calls).toHaveLength(1)
  })

  it('runs one of a hundred equal calls', async () => {
    const { world, invoke, gate } = createWorld()
    const held = deferred<unknown>()
    world.answer = () => held.promise
    // Whichever it is: digests of equal calls are ready in no order.
    const codes: string[] = []
    const ninetyNine = deferred<unknown>()
    const refused = ({ code }: { code: string }) => {
      if (codes.push(code) === 99) ninetyNine.resolve(undefined)
    }
    const calls = Array.from({ length: 100 }, () => invoke(key).catch(refused))
    await ninetyNine.promise
    held.resolve('done')
    const answers = (await Promise.all(calls)).filter((answer) => answer !== undefined)
    expect(answers).toMatchObject([{ result: 'done' }])
    expect(codes).toEqual(Array(99).fill('idempotency_in_progress'))
    expect(world.calls).toHaveLength(1)
    expect(gate.pending).toBe(0)
  })

  it('stays claimed by a call whose outcome is unknown', async () => {
    const { world, invoke } = createWorld()
    world.answer = () => new Promise(() => {})
    await expect(invoke({ ...key, timeout_ms: 5 })).rejects.toMatchObject(refusal('action_timeout'))
    await expect(invoke({ ...key, timeout_ms: 5 })).rejects.toMatchObject(refusal('action_timeout'))
    const controller = new AbortController()
    world.answer = () => {
      controller.abort()
      return new Promise(() => {})
    }
    const gone = invoke({ idempotency_key: 'k2', signal: controller.signal })
    await expect(gone).rejects.toMatchObject(refusal('cancelled'))
    await expect(invoke({ idempotency_key: 'k2' })).rejects.toMatchObject(refusal('action_timeout'))
    expect(world.calls).toHaveLength(2)
  })

  it('is free again when nothing was sent', async () => {
    const { world, invoke } = createWorld({ approve: () => world.time > START })
    await expect(invoke(key)).rejects.toMatchObject(refusal('approval_denied'))
    world.time++
    world.answer = async () => {
      throw new Refusal('connector_unavailable')
    }
    await expect(invoke(key)).rejects.toMatchObject(refusal('connector_unavailable'))
    world.answer = async () => 'done'
    expect(await invoke(key)).toMatchObject({ result: 'done' })
  })

  it('returns no stored answer to a viewer that has lost the right', async () => {
    const { world, invoke } = createWorld()
    await invoke(key)
    world.rights = ['view']
    await expect(invoke(key)).rejects.toMatchObject(refusal('forbidden'))
  })

  it('is limited to a thousand per session, evicting the oldest ended one first', async () => {
    const { world, invoke } = createWorld()
    for (let n = 0; n <= 1_000; n++) await invoke({ idempotency_key: `k${n}` })
    await invoke({ idempotency_key: 'k1000' })
    await invoke({ idempotency_key: 'k1' })
    expect(world.calls).toHaveLength(1_001)
    await invoke({ idempotency_key: 'k0' })
    expect(world.calls).toHaveLength(1_002)
  })

  it('is stored with a digest of its call, whatever its size', async () => {
    const claims: IdempotencyClaim[] = []
    const memory = createIdempotencyStore()
    const { invoke } = createWorld({
      idempotency: {
        ...memory,
        claim(claim) {
          claims.push(claim)
          return memory.claim(claim)
        },
      },
    })
    await invoke({ idempotency_key: 'k', parameters: { text: 'x'.repeat(200_000) } })
    expect(claims[0]?.fingerprint).toMatch(/^[0-9a-f]{64}$/)
  })

  it('is released when its claim was not answered, since it may have been stored', async () => {
    const memory = createIdempotencyStore()
    let isLost = true
    const { world, invoke } = createWorld({
      idempotency: {
        ...memory,
        async claim(claim) {
          const claimed = await memory.claim(claim)
          if (!isLost) return claimed
          isLost = false
          throw new Refusal('unavailable')
        },
      },
    })
    await expect(invoke({ idempotency_key: 'k' })).rejects.toMatchObject(refusal('unavailable'))
    expect(await invoke({ idempotency_key: 'k' })).toMatchObject({ status: 'succeeded' })
    expect(world.calls).toHaveLength(1)
  })
})
