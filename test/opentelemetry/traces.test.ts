/** Spans of commands, calls, actions and messages, with a real tracer. */
import { context, SpanStatusCode, trace as traces } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import * as z from 'zod'
import { createActionHandlers, ingestCooperativeSiteMessage } from '../../src/cooperative-site/index.js'
import { Refusal } from '../../src/internal/refusal.js'
import { createMemoryFacilities } from '../../src/memory/index.js'
import { instrumentation } from '../../src/opentelemetry/index.js'
import { createWorld } from '../cooperative-site/gate-world.js'

const exporter = new InMemorySpanExporter()
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
const host = provider.getTracer('host')
const manager = new AsyncLocalStorageContextManager()
beforeAll(() => void context.setGlobalContextManager(manager.enable()))
afterAll(() => void context.disable())

function follow() {
  exporter.reset()
  const followed = instrumentation({ tracerProvider: provider })
  onTestFinished(() => followed.disable())
  return followed
}

const named = (name: string) => exporter.getFinishedSpans().filter((span) => span.name === name)
const traceparentOf = (span: { traceId: string; spanId: string }) => `00-${span.traceId}-${span.spanId}-01`
const parentOf = (span: ReadableSpan | undefined) => span?.parentSpanContext?.spanId

/** Runs `work` as a request of the host, with its span's `traceparent`. */
async function request<T>(work: (traceparent: string) => Promise<T>) {
  const span = host.startSpan('request')
  const of = span.spanContext()
  const result = await context.with(traces.setSpan(context.active(), span), () => work(traceparentOf(of)))
  span.end()
  return { result, of }
}

const me = { user_id: 'ada', client_id: 'desk' }
const instance = { ...me, instance_id: 'i' }

it('makes the delivery of a command a child of the request, wherever its loop began', async () => {
  follow()
  const facilities = createMemoryFacilities()
  onTestFinished(async () => void (await facilities.close()))
  const { connections, dispatcher } = facilities
  const dispatch = (command_id: string, trace?: string) =>
    dispatcher.dispatch({ ...me, command_id, action: 'sync', payload: { secret: 's3cret' }, ...(trace && { trace }) })
  await connections.connect({ ...instance, client_type: 'web' })
  // The loop begins in this request.
  await request(() =>
    dispatcher.attach(instance, async ({ command_id }) => {
      await null
      host.startSpan('send').end()
      if (command_id === 'bad') throw new Refusal('closed', 's3cret')
    }),
  )
  const { of } = await request((trace) => dispatch('c-1', trace))
  await expect.poll(() => named('deliver sync')).toHaveLength(1)
  const [dispatched] = named('dispatch sync')
  const [delivered] = named('deliver sync')
  expect([parentOf(dispatched), dispatched?.spanContext().traceId]).toEqual([of.spanId, of.traceId])
  expect([parentOf(delivered), delivered?.spanContext().traceId]).toEqual([of.spanId, of.traceId])
  expect(parentOf(named('send')[0])).toBe(delivered?.spanContext().spanId)
  expect(dispatched?.attributes).toMatchObject({ 'messaging.message.id': 'c-1', 'relayscope.state': 'admitted' })
  expect(delivered?.attributes).toMatchObject({ 'relayscope.attempt': 1, 'relayscope.client.id': 'desk' })

  // The acknowledgement comes with a request of its own, which is linked to the command's trace.
  const { of: second } = await request(() => dispatcher.acknowledge({ ...instance, command_id: 'c-1' }))
  const [acknowledged] = named('acknowledge')
  expect(parentOf(acknowledged)).toBe(second.spanId)
  expect(acknowledged?.links.map(({ context }) => context.spanId)).toEqual([of.spanId])
  expect(acknowledged?.attributes['relayscope.counted']).toBe(true)
  await dispatcher.settle({ ...me, command_id: 'c-1', state: 'resulted' })
  expect(named('settle')[0]?.spanContext().traceId).toBe(of.traceId)

  // Without a trace, the delivery begins one.
  await dispatch('bad')
  await expect.poll(() => named('deliver sync')).toHaveLength(2)
  const failed = named('deliver sync')[1]
  expect(failed?.parentSpanContext).toBe(undefined)
  expect([failed?.status, failed?.attributes['error.type']]).toEqual([{ code: SpanStatusCode.ERROR }, 'closed'])
  expect(
    JSON.stringify(exporter.getFinishedSpans().map(({ attributes, events }) => [attributes, events])),
  ).not.toContain('s3cret')
})

it('makes a call one span until its result, and an action with its execution', async () => {
  follow()
  const facilities = createMemoryFacilities()
  onTestFinished(async () => void (await facilities.close()))
  const { of, result: call } = await request(async (trace) => {
    const opened = await facilities.rpc.open({ ...me, action: 'list', timeout_ms: 60_000, trace })
    return { ...opened }
  })
  expect(named('call list')).toEqual([])
  await facilities.rpc.settle(call.correlation_id, { ok: false, error: new Error('s3cret') })
  await expect(call.result).rejects.toThrow()
  await expect.poll(() => named('call list')).toHaveLength(1)
  const [called] = named('call list')
  expect([parentOf(called), called?.attributes['error.type']]).toEqual([of.spanId, 'Error'])

  const actions = createActionHandlers({ onError: null })
  actions.handle('archive_note', { parameters: z.object({ id: z.int() }) }, () => {
    host.startSpan('archive').end()
    return null
  })
  const { invoke } = createWorld({
    connector: {
      async call(_client, { action, parameters, trace }) {
        const outcome = await actions.execute({ action, parameters: { id: parameters.id }, trace })
        return outcome?.ok ? outcome.result : null
      },
    },
  })
  const { of: viewer } = await request((trace) => invoke({ trace }))
  const [invoked] = named('invoke archive_note')
  const [executed] = named('execute archive_note')
  expect(parentOf(invoked)).toBe(viewer.spanId)
  expect(invoked?.attributes['relayscope.state']).toBe('succeeded')
  expect(parentOf(executed)).toBe(invoked?.spanContext().spanId)
  expect(parentOf(named('archive')[0])).toBe(executed?.spanContext().spanId)

  // In another process there is only the trace.
  const trace = traceparentOf(viewer)
  await actions.execute({ action: 'archive_note', parameters: { id: 7 }, trace })
  expect(parentOf(named('execute archive_note')[1])).toBe(viewer.spanId)
  await expect(
    ingestCooperativeSiteMessage({} as never, { host: {}, message: { trace: 'wrong' } } as never),
  ).rejects.toThrow()
  expect(named('ingest')[0]?.attributes['error.type']).toBe('invalid_input')
})

it('makes none when it is disabled, and ends those that are open', async () => {
  const followed = follow()
  const { rpc, close } = createMemoryFacilities()
  onTestFinished(async () => void (await close()))
  await rpc.open({ ...me, action: 'list', timeout_ms: 60_000 })
  followed.disable()
  expect(named('call list')).toHaveLength(1)
  await rpc.open({ ...me, action: 'list', timeout_ms: 60_000 })
  followed.disable()
  followed.enable()
  followed.enable()
  await rpc.open({ ...me, action: 'again', timeout_ms: 60_000 })
  followed.disable()
  expect([named('call list').length, named('call again').length]).toEqual([1, 1])
})
