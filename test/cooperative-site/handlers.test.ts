import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { ActionFailure, createActionHandlers, type ResultSink } from '../../src/cooperative-site/index.js'
import { badHooks, flushPromises } from '../bad-hooks.js'
import { deferred } from './deferred.js'

const reserved = { __cooperative_site_session_id: 's1', __cooperative_site_id: 'notes' }
const parameters = z.strictObject({ id: z.int() })

/** Collects the records that `resultSink` receives. */
function sink() {
  const told: Parameters<ResultSink>[0][] = []
  return { told, resultSink: (record: Parameters<ResultSink>[0]) => void told.push(record) }
}

describe('the action handlers of an application', () => {
  it('validate without the reserved parameters and pass them to the handler', async () => {
    const handlers = createActionHandlers()
    handlers.handle('archive_note', { parameters }, (given, context) => ({ given, ...context, signal: null }))
    expect(
      await handlers.execute({ action: 'archive_note', parameters: { id: 7, ...reserved }, correlation_id: 'c1' }),
    ).toEqual({
      ok: true,
      result: {
        given: { id: 7, ...reserved },
        action: 'archive_note',
        correlation_id: 'c1',
        session_id: 's1',
        site_id: 'notes',
        signal: null,
      },
    })
    expect(handlers.names).toEqual(['archive_note'])
  })

  it('let no schema change the reserved parameters', async () => {
    const handlers = createActionHandlers()
    const forging = z.looseObject({}).transform((own) => ({ ...own, __cooperative_site_session_id: 'forged' }))
    handlers.handle('archive_note', { parameters: forging }, (given) => given)
    expect(await handlers.execute({ action: 'archive_note', parameters: reserved })).toEqual({
      ok: true,
      result: reserved,
    })
  })

  it.each(['execute', 'EXEC', 'run', '*'])('are not registered under the generic name %s', (name) => {
    const handle = () => createActionHandlers().handle(name, { parameters }, () => null)
    expect(handle).toThrow(expect.objectContaining({ code: 'generic_action_name' }))
  })

  it('are registered once, under a name', () => {
    const handlers = createActionHandlers()
    handlers.handle('archive_note', { parameters }, () => null)
    const invalid = expect.objectContaining({ code: 'invalid_input' })
    expect(() => handlers.handle('archive_note', { parameters }, () => null)).toThrow(invalid)
    expect(() => handlers.handle('archive note', { parameters }, () => null)).toThrow(invalid)
  })

  it.each([null, undefined, 'archive_note', 7, {}])('never reject, even for an invalid call: %j', async (call) => {
    const handlers = createActionHandlers()
    handlers.handle('archive_note', { parameters }, () => 'ran')
    expect(await handlers.execute(call as never)).toEqual({
      ok: false,
      error: { code: 'unknown_action', message: null },
    })
  })

  it.each<[string, object, string]>([
    ['an undeclared action', { action: 'toString' }, 'unknown_action'],
  ])('never reject, and refuse %s', async (_, change, code) => {
    const { told, resultSink } = sink()
    const handlers = createActionHandlers({ resultSink })
    handlers.handle('archive_note', { parameters }, () => 'ran')
    const outcome = await handlers.execute({ action: 'archive_note', parameters: { id: 7 }, ...change })
    expect(outcome).toEqual({ ok: false, error: { code, message: null } })
    expect(told).toMatchObject([{ outcome }])
  })

  it.each<[string, object, string]>([
    ['authorize says no', { authorize: () => false }, 'not_authorized'],
    ['authorize says something else', { authorize: () => 1 }, 'not_authorized'],
    ['approve says no', { approve: () => false }, 'approval_denied'],
    ['both say no', { authorize: () => false, approve: () => false }, 'not_authorized'],
  ])('do not run when %s', async (_, options, code) => {
    const handlers = createActionHandlers()
    let ran = false
    handlers.handle('archive_note', { parameters, ...options }, () => {
      ran = true
    })
    expect(await handlers.execute({ action: 'archive_note', parameters: { id: 7 } })).toEqual({
      ok: false,
      error: { code, message: null },
    })
    expect(ran).toBe(false)
  })

  it.each<[string, unknown, string]>([
    ['a value that the schema refuses', { id: 'seven', note: { text: 's3cr3t' } }, 'invalid: id'],
    ['several', { id: 'seven', tags: ['s3cr3t'] }, 'invalid: id, tags.0'],
    ['nothing', undefined, 'invalid: id'],
    ['no object', [], 'invalid: id'],
  ])('report the path of parameters with %s, and to the sink the reason', async (_, given, message) => {
    const { told, resultSink } = sink()
    const handlers = createActionHandlers({ resultSink, onError: () => expect.unreachable() })
    const schema = z.looseObject({ id: z.int(), tags: z.array(z.int()).optional() })
    handlers.handle('archive_note', { parameters: schema }, () => 'ran')
    const outcome = await handlers.execute({ action: 'archive_note', parameters: given as never })
    expect(outcome).toEqual({ ok: false, error: { code: 'invalid_parameters', message } })
    expect(told).toMatchObject([
      { outcome, issues: [{ path: ['id'], message: expect.any(String) }, ...(told[0]?.issues?.slice(1) ?? [])] },
    ])
  })

  it.each([
    'authorize',
    'approve',
  ])('treat what %s throws as an error, not as a refusal, and report it', async (check) => {
    const told: unknown[] = []
    const handlers = createActionHandlers({ onError: (error, { action }) => told.push(error, action) })
    const options = { parameters, [check]: () => Promise.reject(new Error('secret')) }
    handlers.handle('archive_note', options, () => expect.unreachable())
    expect(await handlers.execute({ action: 'archive_note', parameters: { id: 7 } })).toEqual({
      ok: false,
      error: { code: 'handler_error', message: null },
    })
    expect(told).toEqual([new Error('secret'), 'archive_note'])
  })

  it('report what a handler throws, even after the caller left, and no failures it declares itself', async () => {
    const told: unknown[] = []
    const handlers = createActionHandlers({ onError: (error) => told.push(error) })
    const left = new AbortController()
    handlers.handle('late', { parameters: z.object({}) }, async () => {
      left.abort()
      await flushPromises()
      throw new Error('late')
    })
    handlers.handle('no', { parameters: z.object({}) }, () => Promise.reject(new ActionFailure('locked', 'Not now')))
    await handlers.execute({ action: 'late' }, { signal: left.signal })
    await handlers.execute({ action: 'no' })
    await flushPromises()
    expect(told).toEqual([new Error('late')])
  })

  it('ask for approval of exactly what runs, once per call', async () => {
    const handlers = createActionHandlers()
    const asked: number[] = []
    handlers.handle(
      'archive_note',
      {
        parameters,
        approve: (given) => {
          asked.push(given.id)
          expect(() => {
            given.id = 8
          }).toThrow(TypeError)
          return true
        },
      },
      ({ id }) => id,
    )
    expect(await handlers.execute({ action: 'archive_note', parameters: { id: 7 } })).toEqual({ ok: true, result: 7 })
    await handlers.execute({ action: 'archive_note', parameters: { id: 7 } })
    expect(asked).toEqual([7, 7])
  })

  it('freeze the input, and nothing that a schema replaced', async () => {
    class Note {
      lines: string[] = []
    }
    const own = { note: new Note(), record: { lines: [] as string[] }, bytes: new Uint8Array(1) }
    const handlers = createActionHandlers({ onError: (error) => expect.unreachable(String(error)) })
    const schema = z.object({
      tags: z.unknown(),
      sent: z.instanceof(Uint8Array),
      key: z.string().transform(() => own),
    })
    handlers.handle('add_line', { parameters: schema, approve: ({ key }) => key === own }, ({ tags, sent, key }) => {
      expect(() => (tags as string[]).push('x')).toThrow(TypeError)
      sent[0] = 7
      key.bytes[0] = 7
      for (const { lines } of [key.note, key.record]) lines.push('x')
    })
    const given = { tags: ['a'], sent: new Uint8Array(1), key: 'k' }
    expect(await handlers.execute({ action: 'add_line', parameters: given })).toEqual({ ok: true, result: null })
    expect(own).toEqual({ note: { lines: ['x'] }, record: { lines: ['x'] }, bytes: new Uint8Array([7]) })
  })

  it.each<[string, (given: { id: number }) => unknown]>([
    ['an object of a class', ({ id }) => new Date(id)],
    ['a list', ({ id }) => [id]],
    ['a number', ({ id }) => id],
    ['null', () => null],
  ])('run nothing if a schema turns the parameters into %s, and report it', async (_, make) => {
    const told: unknown[] = []
    const handlers = createActionHandlers({ onError: (error) => told.push(error) })
    const options = { parameters: parameters.transform(make), authorize: () => expect.unreachable() }
    handlers.handle('archive_note', options, () => expect.unreachable())
    expect(await handlers.execute({ action: 'archive_note', parameters: { id: 7 } })).toEqual({
      ok: false,
      error: { code: 'handler_error', message: null },
    })
    expect(told).toEqual([
      new TypeError('A schema of parameters must return a plain object, not an array or a class instance'),
    ])
  })

  it('return the message of an ActionFailure, and of no other error', async () => {
    const { told, resultSink } = sink()
    const handlers = createActionHandlers({ resultSink, onError: null })
    handlers.handle('locked', { parameters: z.object({}) }, () => {
      throw new ActionFailure('note_locked', 'Another user is editing it')
    })
    handlers.handle('broken', { parameters: z.object({}) }, async () => {
      throw new Error('secret')
    })
    expect(await handlers.execute({ action: 'locked' })).toEqual({
      ok: false,
      error: { code: 'note_locked', message: 'Another user is editing it' },
    })
    expect(await handlers.execute({ action: 'broken' })).toEqual({
      ok: false,
      error: { code: 'handler_error', message: null },
    })
    expect(told).toHaveLength(2)
  })

  it('lend a lease to one call at a time, and get it back when the handler has ended', async () => {
    const handlers = createActionHandlers()
    const held = deferred<string>()
    handlers.handle('archive_note', { parameters, lease: true }, () => held.promise)
    handlers.handle('add_note', { parameters, lease: 'file' }, () => held.promise)
    handlers.handle('move_note', { parameters, lease: 'file' }, () => 'moved')
    const call = (action: string) => handlers.execute({ action, parameters: { id: 7 } })
    const busy = { ok: false, error: { code: 'busy', message: null } }
    const running = [call('archive_note'), call('add_note')]
    expect(await call('archive_note')).toEqual(busy)
    expect(await call('move_note')).toEqual(busy)
    held.resolve('done')
    expect(await Promise.all(running)).toEqual([
      { ok: true, result: 'done' },
      { ok: true, result: 'done' },
    ])
    expect(await call('move_note')).toEqual({ ok: true, result: 'moved' })
  })

  it('answer cancelled once the caller has left, and keep the lease until the handler has ended', async () => {
    const handlers = createActionHandlers()
    const held = deferred<null>()
    const controller = new AbortController()
    let signal: AbortSignal | undefined
    handlers.handle('archive_note', { parameters, lease: true }, (_, context) => {
      signal = context.signal
      queueMicrotask(() => controller.abort())
      return held.promise
    })
    const call = (options?: { signal: AbortSignal }) =>
      handlers.execute({ action: 'archive_note', parameters: { id: 7 } }, options)
    expect(await call({ signal: controller.signal })).toEqual({
      ok: false,
      error: { code: 'cancelled', message: null },
    })
    expect(signal?.aborted).toBe(true)
    expect(await call()).toMatchObject({ error: { code: 'busy' } })
    held.resolve(null)
    await held.promise
    await Promise.resolve()
    expect(await call({ signal: controller.signal })).toMatchObject({ error: { code: 'cancelled' } })
  })

  it('do not run an approved action whose caller has left', async () => {
    const handlers = createActionHandlers()
    const controller = new AbortController()
    let ran = false
    const approve = () => {
      controller.abort()
      return true
    }
    handlers.handle('archive_note', { parameters, approve }, () => {
      ran = true
    })
    await handlers.execute({ action: 'archive_note', parameters: { id: 7 } }, { signal: controller.signal })
    await new Promise((resolve) => setImmediate(resolve))
    expect(ran).toBe(false)
  })

  it('ignore a repeated correlation id, and remember ten thousand', async () => {
    const told: unknown[] = []
    const handlers = createActionHandlers({ resultSink: (record) => told.push(record) })
    let runs = 0
    handlers.handle('archive_note', { parameters }, () => ++runs)
    const call = (correlation_id: string) =>
      handlers.execute({ action: 'archive_note', parameters: { id: 7 }, correlation_id })
    await call('c0')
    expect(await call('c0')).toBeUndefined()
    expect(runs).toBe(1)
    expect(told).toHaveLength(1)
    for (let n = 1; n <= 10_000; n++) await call(`c${n}`)
    expect(runs).toBe(10_001)
    await call('c0')
    expect(runs).toBe(10_002)
    await call('c9000')
    expect(runs).toBe(10_002)
  })

  it.each(badHooks)('give the same answer when the sink %s', async (_, resultSink) => {
    const handlers = createActionHandlers({ resultSink })
    handlers.handle('archive_note', { parameters }, () => undefined)
    expect(await handlers.execute({ action: 'archive_note', parameters: { id: 7 } })).toEqual({
      ok: true,
      result: null,
    })
    await flushPromises()
  })

  it('get a lease back when the handler fails', async () => {
    const handlers = createActionHandlers({ onError: null })
    let runs = 0
    handlers.handle('archive_note', { parameters: z.looseObject({}), lease: true }, () => {
      if (++runs === 1) throw new Error('x')
      return runs
    })
    await handlers.execute({ action: 'archive_note' })
    expect(await handlers.execute({ action: 'archive_note' })).toEqual({ ok: true, result: 2 })
  })
})
