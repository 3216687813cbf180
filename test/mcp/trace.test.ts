/** The trace of a tool call, and which types a caller must accept. */
import { describe, expect, it } from 'vitest'
import { createSubject } from '../diagnostics/subject.js'
import { callMessage, message, serveRouter, subject } from './subject.js'

describe('a tool call with _meta.traceparent', () => {
  const TRACE = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const OTHER = `${TRACE.slice(0, -2)}00`
  const traces = async (meta: object, sent: Record<string, string> = {}) => {
    const seen: string[] = []
    const router = createSubject({
      requestId: ({ headers }) => {
        seen.push(`${headers.get('traceparent')} ${headers.get('tracestate')}`)
        return null
      },
      onAccess: () => {},
    })
    const called = callMessage('relay_overview')
    const body = { ...called, params: { ...called.params, _meta: meta } }
    for (const source of [{ router }, { url: await serveRouter(router) }])
      await (await subject(source)(message(body, { traceparent: OTHER, ...sent }))).text()
    return [...new Set(seen)]
  }

  it('reaches the router as its header, instead of that of the HTTP request', async () => {
    // Authentication reads the router before the message is read.
    expect(await traces({ traceparent: TRACE })).toEqual([`${OTHER} null`, `${TRACE} null`])
    expect(await traces({ traceparent: '00-bad' })).toEqual([`${OTHER} null`])
    expect(await traces({ traceparent: { a: 1 } })).toEqual([`${OTHER} null`])
  })

  it('has its own tracestate, never that of another traceparent', async () => {
    const sent = { tracestate: 'a=1' }
    const ofTheRequest = `${OTHER} a=1`
    for (const tracestate of ['b=2,c=3', 'b'.repeat(512)])
      expect(await traces({ traceparent: TRACE, tracestate }, sent)).toEqual([ofTheRequest, `${TRACE} ${tracestate}`])
    for (const tracestate of [undefined, '', 'b'.repeat(513), 'b=\n', 7])
      expect(await traces({ traceparent: TRACE, tracestate }, sent)).toEqual([ofTheRequest, `${TRACE} null`])
    expect(await traces({ tracestate: 'b=2' }, sent)).toEqual([ofTheRequest])
  })
})

describe('Accept', () => {
  const ask = async (accept: string | null) => {
    const request = message({ jsonrpc: '2.0', id: 1, method: 'ping' })
    if (accept === null) request.headers.delete('accept')
    else request.headers.set('accept', accept)
    const response = await subject()(request)
    await response.text()
    return response.status
  }

  it.each([
    null,
    '',
    '*/*',
    'application/*, text/*',
    'application/json, */*;q=0.5',
    'Application/JSON;charset=utf-8 , TEXT/event-stream; q=0.001',
    'text/html, application/json;q=0.9, text/*;q=0.1',
    '*/*;q=0, application/json, text/event-stream',
  ])('%s takes both types', async (accept) => {
    expect(await ask(accept)).toBe(200)
  })

  it.each([
    'text/html',
    'application/json',
    'text/event-stream',
    'application/json, text/event-stream;q=0',
    '*/*, text/*;q=0.0',
    '*/*;q=0',
  ])('%s is 406', async (accept) => {
    expect(await ask(accept)).toBe(406)
  })
})
