/** What the gate answers for whatever the application does with a call. */
import { describe, expect, it } from 'vitest'
import { ActionFailure } from '../../src/cooperative-site/index.js'
import { Refusal } from '../../src/internal/refusal.js'
import { badHooks, flushPromises } from '../bad-hooks.js'
import { deferred } from './deferred.js'
import { createWorld, refusal } from './gate-world.js'

describe('the outcome of an action', () => {
  it.each<[string, () => unknown, object]>([
    [
      'an ActionFailure',
      () => Promise.reject(new ActionFailure('locked', 'In use')),
      { code: 'locked', message: 'In use' },
    ],
    [
      'an ActionFailure without words',
      () => Promise.reject(new ActionFailure('locked')),
      { code: 'locked', message: null },
    ],
    [
      'an ActionFailure whose code is a text',
      () => Promise.reject(new ActionFailure('So sorry!')),
      { code: 'other', message: null },
    ],
    [
      'any other throw',
      () => Promise.reject(new Error('secret /etc/passwd')),
      { code: 'handler_error', message: null },
    ],
    [
      'a throw at once',
      () => {
        throw new Error('secret')
      },
      { code: 'handler_error', message: null },
    ],
    [
      'a refusal that is not about the call',
      () => Promise.reject(new Refusal('forbidden', 'secret')),
      { code: 'handler_error', message: null },
    ],
    ['a result over 1 MiB', async () => 'x'.repeat(1_048_577), { code: 'result_too_large', message: null }],
    ['a result that is no JSON', async () => ({ n: 1n }), { code: 'handler_error', message: null }],
  ])('answers failed for %s', async (_, answer, error) => {
    const seen: unknown[] = []
    const { world, invoke } = createWorld({ onError: (thrown) => seen.push(thrown) })
    world.answer = answer
    const invocation = await invoke()
    expect(invocation).toMatchObject({ status: 'failed', result: null, error })
    expect(JSON.stringify(invocation)).not.toContain('secret')
  })

  it.each(badHooks)('gives the same answer when the error hook %s', async (_, onError) => {
    const { world, invoke } = createWorld({ onError })
    world.answer = () => Promise.reject(new Error('secret'))
    expect(await invoke()).toMatchObject({ status: 'failed', error: { code: 'handler_error', message: null } })
    const asked = createWorld({ onError, approve: () => Promise.reject(new Error('secret')) })
    await expect(asked.invoke()).rejects.toMatchObject(refusal('approval_denied'))
    await flushPromises()
  })

  it("shows at most 1,024 well-formed characters of a handler's message", async () => {
    const { world, invoke } = createWorld()
    world.answer = async () => {
      throw new ActionFailure('locked', `\ud800${'x'.repeat(2_000)}`)
    }
    expect((await invoke()).error?.message).toBe(`\ufffd${'x'.repeat(1_023)}`)
  })

  it('returns null for an undefined result', async () => {
    const { world, invoke } = createWorld()
    world.answer = async () => undefined
    expect(await invoke()).toMatchObject({ status: 'succeeded', result: null })
  })

  it('refuses with connector_unavailable when the connector says so', async () => {
    const { world, invoke } = createWorld()
    world.answer = async () => {
      throw new Refusal('connector_unavailable')
    }
    await expect(invoke()).rejects.toMatchObject(refusal('connector_unavailable'))
  })

  it.each([
    'timeout',
    'unavailable',
    'closed',
  ] as const)('reports an unknown outcome when the connector lost the call (%s)', async (code) => {
    const { world, invoke } = createWorld()
    world.answer = async () => {
      throw new Refusal(code)
    }
    await expect(invoke()).rejects.toMatchObject(refusal('action_timeout'))
  })

  it('fails at the timeout, aborts the call, and drops a late result', async () => {
    const { world, invoke, gate } = createWorld()
    const late = deferred<unknown>()
    let aborted = false
    world.answer = (_client, { signal }) => {
      signal.addEventListener('abort', () => {
        aborted = true
      })
      return late.promise
    }
    await expect(invoke({ timeout_ms: 5 })).rejects.toMatchObject(refusal('action_timeout'))
    expect(aborted).toBe(true)
    expect(gate.pending).toBe(0)
    late.resolve('late')
  })

  it.each([0, 120_001, 1.5, Number.NaN])('refuses a timeout of %s ms', async (timeout_ms) => {
    await expect(createWorld().invoke({ timeout_ms })).rejects.toMatchObject(refusal('invalid_input'))
  })

  it('passes the trace to the connector, and refuses an invalid one', async () => {
    const { world, invoke } = createWorld()
    const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    await invoke({ trace })
    expect(world.calls).toMatchObject([[{ client_id: 'laptop' }, { trace }]])
    await expect(invoke({ trace: '00-1-2-3' })).rejects.toMatchObject(refusal('invalid_input'))
    expect(world.calls).toHaveLength(1)
  })

  it('cancels the call when the viewer disconnects', async () => {
    const { world, invoke, gate } = createWorld()
    const controller = new AbortController()
    let aborted = false
    world.answer = (_client, { signal }) => {
      signal.addEventListener('abort', () => {
        aborted = true
      })
      controller.abort()
      return new Promise(() => {})
    }
    await expect(invoke({ signal: controller.signal })).rejects.toMatchObject(refusal('cancelled'))
    expect(aborted).toBe(true)
    expect(gate.pending).toBe(0)
    await expect(invoke({ signal: controller.signal })).rejects.toMatchObject(refusal('cancelled'))
    expect(world.calls).toHaveLength(1)
  })
})
