/** Single defences of keys, parameters, the connector and its replies, each of which could be weakened without another test's notice. */
import { describe, expect, it } from 'vitest'
import { siteStream } from '../../src/contract/ingest.js'
import type { IdempotencyClaim } from '../../src/contract/invocations.js'
import { createDispatchConnector, createIdempotencyStore } from '../../src/cooperative-site/index.js'
import { createSessionGrants } from '../../src/cooperative-site/sessions/grants.js'
import { Refusal } from '../../src/refusal.js'
import { claimOf } from '../contract/idempotency.js'
import { createWorld as createGate, refusal, START } from './gate-world.js'
import { flushPromises } from './viewer.js'
import { createWorld, laptop } from './world.js'

const ask = { signal: new AbortController().signal }

describe('a call', () => {
  it.each([0, 1.5, 120_001, Number.NaN])('may not take %j ms', async (timeout_ms) => {
    const { world, invoke } = createGate()
    await expect(invoke({ timeout_ms })).rejects.toMatchObject(refusal('invalid_input'))
    expect(world.calls).toEqual([])
    await invoke({ timeout_ms: 120_000 })
  })

  it('has parameters of 256 KiB in bytes, whatever they are in characters', async () => {
    const { world, invoke } = createGate()
    const parameters = { text: 'é'.repeat(150_000) }
    await expect(invoke({ parameters })).rejects.toMatchObject(refusal('invalid_parameters'))
    expect(world.calls).toEqual([])
  })
})

describe('an idempotency key', () => {
  it('is kept with a digest of its call, however much that says', async () => {
    const claims: IdempotencyClaim[] = []
    const memory = createIdempotencyStore()
    const { invoke } = createGate({
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

  it('whose claim was not answered is given back, because it may have come through', async () => {
    const memory = createIdempotencyStore()
    let isLost = true
    const { world, invoke } = createGate({
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

  it('finds no room among as many that are all under way', async () => {
    const store = createIdempotencyStore({ maxKeys: 2 })
    await store.claim(claimOf({ user_id: 'ann' }))
    await store.claim(claimOf({ user_id: 'bob' }))
    await expect(store.claim(claimOf({ user_id: 'carol' }))).rejects.toMatchObject(refusal('capacity_exceeded'))
  })
})

describe('the connector', () => {
  it('hands nothing to a client that the registry does not know, whoever waits at the dispatcher', async () => {
    const { facilities } = await createWorld()
    const delivered: unknown[] = []
    await facilities.dispatcher.attach(laptop, (command) => void delivered.push(command))
    const dispatched: unknown[] = []
    const connector = createDispatchConnector({
      ...facilities,
      connections: { currentInstance: async () => null },
      dispatcher: {
        ...facilities.dispatcher,
        dispatch(input) {
          dispatched.push(input)
          return facilities.dispatcher.dispatch(input)
        },
      },
    })
    const call = { action: 'archive_note', parameters: {}, timeout_ms: 50, signal: ask.signal }
    const client = { user_id: 'alice', client_id: 'laptop' }
    await expect(connector.call(client, call)).rejects.toMatchObject(refusal('connector_unavailable'))
    expect([dispatched, delivered]).toEqual([[], []])
  })

  it('records no command of which nobody can tell that it was admitted', async () => {
    const { facilities } = await createWorld()
    const appended: unknown[] = []
    const connector = createDispatchConnector({
      ...facilities,
      history: {
        append(input) {
          appended.push(input)
          return facilities.history.append(input)
        },
      },
      dispatcher: {
        ...facilities.dispatcher,
        async dispatch() {
          throw new Refusal('unavailable', 'the reply is lost', { outcome: 'unknown' })
        },
      },
    })
    const call = { action: 'archive_note', parameters: {}, timeout_ms: 50, signal: ask.signal }
    const client = { user_id: 'alice', client_id: 'laptop' }
    await expect(connector.call(client, call)).rejects.toMatchObject(refusal('timeout'))
    expect(appended).toEqual([])
  })

  it('settles no command by a reply to a call that it cannot ask about', async () => {
    const { facilities } = await createWorld()
    const { inspector: _, ...rpc } = facilities.rpc
    const connector = createDispatchConnector({ ...facilities, rpc })
    await facilities.dispatcher.attach(laptop, () => {})
    const key = { user_id: 'alice', client_id: 'laptop', command_id: 'no-action' }
    await facilities.dispatcher.dispatch({ ...key, action: 'wake_up', payload: null })
    const reply = { ...laptop, correlation_id: key.command_id, outcome: { ok: true as const, result: 1 } }
    expect(await connector.reply(reply)).toBe(false)
    expect(await facilities.dispatcher.inspector.status(key, ask)).toMatchObject({ terminal: null })
  })
})

describe('a grant', () => {
  it('that was fresh is not any more once something has changed, while nobody knows what', async () => {
    const { world } = createGate()
    let answer: () => Promise<typeof world.session> = async () => world.session
    let changed = () => {}
    const grants = createSessionGrants({
      sessions: {
        get: () => answer(),
        watch: (_, notify) => {
          changed = notify
          return () => {}
        },
      },
      sites: { get: async () => world.site },
      policy: { check: async () => true },
      now: () => START,
    })
    const grant = grants.hold(
      { fresh: () => {}, ended: () => {} },
      { user_id: 'bob' },
      { session_id: 's1', topic: siteStream('alice', 'notes') },
    )
    grant.refresh()
    await flushPromises()
    expect(grant.isFresh).toBe(true)
    answer = () => new Promise(() => {})
    changed()
    expect(grant.isFresh).toBe(false)
  })
})
