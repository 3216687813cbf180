/** Holds the invocation of the browser client, over real sockets. */
import { afterEach, describe, expect, it } from 'vitest'
import { createCooperativeSiteClient } from '../../src/browser/index.js'
import { answerJson, type HandRelay, startHandRelay, type Visit } from './relay.js'

const open: HandRelay[] = []
afterEach(async () => {
  for (const relay of open.splice(0)) await relay.close()
})

async function startRelay(answer?: (visit: Visit, n: number) => void) {
  const relay = await startHandRelay(answer)
  open.push(relay)
  return { relay, client: createCooperativeSiteClient({ baseUrl: relay.url, sessionId: 's/1' }) }
}

const invocation = {
  invocation_id: 'i',
  action: 'add_note',
  status: 'succeeded',
  result: { id: 1 },
  error: null,
  started_at: '2026-01-01T00:00:00.000Z',
  finished_at: '2026-01-01T00:00:00.500Z',
}

describe('invoke', () => {
  it('posts the parameters and returns the body of the answer', async () => {
    const { relay, client } = await startRelay((visit) => answerJson(visit, 200, invocation))
    const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    const options = { idempotencyKey: 'k', timeoutMs: 500, trace }
    await expect(client.invoke('add_note', { text: 'milk' }, options)).resolves.toEqual(invocation)
    const { request, body } = await relay.visit(0)
    expect([request.method, request.url]).toEqual(['POST', '/sessions/s%2F1/actions/add_note'])
    expect(request.headers).toMatchObject({ 'content-type': 'application/json', 'idempotency-key': 'k' })
    expect(JSON.parse(body)).toEqual({ parameters: { text: 'milk' }, timeout_ms: 500, trace })
  })

  it('sends neither parameters, key nor timeout that were not given', async () => {
    const { relay, client } = await startRelay((visit) => answerJson(visit, 200, invocation))
    await client.invoke('add_note')
    const { request, body } = await relay.visit(0)
    expect(body).toBe('{}')
    expect(request.headers['idempotency-key']).toBeUndefined()
  })

  it('sends an empty key, too, which the relay refuses, instead of dropping it', async () => {
    const { relay, client } = await startRelay((visit) => answerJson(visit, 200, invocation))
    await client.invoke('add_note', {}, { idempotencyKey: '' })
    expect((await relay.visit(0)).request.headers['idempotency-key']).toBe('')
  })

  it('returns a failure of the application as a result', async () => {
    const failed = { ...invocation, status: 'failed', result: null, error: { code: 'no_such_note', message: null } }
    const { client } = await startRelay((visit) => answerJson(visit, 200, failed))
    await expect(client.invoke('archive_note', { id: 9 })).resolves.toEqual(failed)
  })

  it.each([
    [403, { code: 'action_not_allowed' }, undefined],
    [409, { code: 'session_not_active' }, undefined],
    [504, { code: 'action_timeout', outcome: 'unknown' }, 'unknown'],
  ])('rejects on %i with the problem of the relay', async (status, problem, outcome) => {
    const { relay, client } = await startRelay((visit) => answerJson(visit, status, problem))
    await expect(client.invoke('add_note', {})).rejects.toMatchObject({ code: problem.code, status, outcome })
    expect(relay.visits).toHaveLength(1)
  })

  it('lists the invalid fields reported by the relay, the first of them in its message', async () => {
    const errors = [
      { in: 'body', name: 'timeout_ms', reason: 'must be at most 120000' },
      { in: 'body', name: 'x', reason: 'is unknown' },
    ]
    const many = [...errors, ...Array.from({ length: 8 }, () => errors[1])]
    const { client } = await startRelay((visit) => answerJson(visit, 422, { code: 'invalid_body', errors: many }))
    await expect(client.invoke('add_note', {})).rejects.toMatchObject({
      errors: many.slice(0, 8),
      message: 'invalid_body (422): timeout_ms must be at most 120000',
    })
  })

  it.each([
    ['no list', 'x'],
    ['no such records', [{ name: 'x' }]],
    ['a text longer than a problem', [{ in: 'body', name: 'x', reason: 'y'.repeat(2_049) }]],
  ])('ignores errors that are %s', async (_what, errors) => {
    const { client } = await startRelay((visit) => answerJson(visit, 422, { code: 'invalid_body', errors }))
    const refused = { errors: undefined, message: 'invalid_body (422)' }
    await expect(client.invoke('add_note', {})).rejects.toMatchObject(refused)
  })

  it('reports an unknown outcome when the connection is lost or the response is invalid', async () => {
    const { client } = await startRelay((visit, n) => {
      if (n === 0) visit.response.destroy()
      else if (n === 1) answerJson(visit, 200, ['not an object'])
      else answerJson(visit, 200, { ...invocation, result: 'x'.repeat(2_097_152) })
    })
    const lost = { code: 'unreachable', status: null, outcome: 'unknown' }
    const odd = { code: 'unexpected_answer', status: 200, outcome: 'unknown' }
    await expect(client.invoke('add_note', {})).rejects.toMatchObject(lost)
    await expect(client.invoke('add_note', {})).rejects.toMatchObject(odd)
    await expect(client.invoke('add_note', {})).rejects.toMatchObject(odd)
  })

  it.each([
    [502, '<h1>Bad Gateway</h1>', 'unknown'],
    [504, '', 'unknown'],
    [500, '{"message":"an error occurred"}', 'unknown'],
    [503, '{"code":"connector_unavailable"}', undefined],
    [202, '', 'unknown'],
    [204, undefined, 'unknown'],
    [201, JSON.stringify(invocation), 'unknown'],
    [202, '{"code":"queued"}', 'unknown'],
    [404, '<h1>Not Found</h1>', undefined],
    [408, '', undefined],
  ])('maps %i %s to the outcome %s', async (status, body, outcome) => {
    const { client } = await startRelay(({ response }) => response.writeHead(status).end(body))
    const error = await client.invoke('add_note', {}).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ name: 'CooperativeSiteError', status, outcome })
  })

  it.each([
    ['nothing', {}],
    ['an outcome that it has not', { ...invocation, status: 'maybe' }],
    ['no result', { ...invocation, result: undefined }],
    ['an error without its code', { ...invocation, status: 'failed', error: { message: null } }],
    ['a time that is a number', { ...invocation, started_at: 0 }],
  ])('rejects a response that claims %s', async (_what, body) => {
    const { client } = await startRelay((visit) => answerJson(visit, 200, body))
    const odd = { code: 'unexpected_answer', status: 200, outcome: 'unknown' }
    await expect(client.invoke('add_note', {})).rejects.toMatchObject(odd)
  })

  it('accepts fields of a newer relay', async () => {
    const newer = { ...invocation, weather: 'fine' }
    const { client } = await startRelay((visit) => answerJson(visit, 200, newer))
    await expect(client.invoke('add_note', {})).resolves.toEqual(newer)
  })

  it('never follows a redirect', async () => {
    const elsewhere = await startRelay((visit) => answerJson(visit, 200, invocation))
    const { client } = await startRelay((visit) => answerJson(visit, 307, {}, { location: `${elsewhere.relay.url}/x` }))
    await expect(client.invoke('add_note', {})).rejects.toMatchObject({ code: 'redirected' })
    expect(elsewhere.relay.visits).toHaveLength(0)
  })

  it('aborts the request with its signal, and rejects with the reason', async () => {
    const { relay, client } = await startRelay()
    const left = new AbortController()
    const reason = new Error('the viewer left')
    const answer = client.invoke('add_note', {}, { signal: left.signal })
    const { response } = await relay.visit(0)
    const hungUp = new Promise((resolve) => response.on('close', resolve))
    left.abort(reason)
    await expect(answer).rejects.toBe(reason)
    await hungUp
  })

  it.each(['', '.', '..'])('refuses the action name %j', async (action) => {
    const { client } = await startRelay()
    await expect(client.invoke(action, {})).rejects.toThrow(TypeError)
  })
})
