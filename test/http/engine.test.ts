/** The behaviour that all our routers share: the order of their checks, and their errors. */
import { describe, expect, it } from 'vitest'
import { createEngine, toHandler } from '../../src/internal/http/engine.js'
import { ProblemError, toProblemError } from '../../src/internal/http/problem.js'
import { jsonReply } from '../../src/internal/http/respond.js'
import { Refusal } from '../../src/internal/refusal.js'

/** A router of two routes; what is asked of it, in the order in which it happens, and whatever `broken` names fails. */
function createSubject(broken: string[] = []) {
  const steps: string[] = []
  const step = (name: string, problem: ProblemError | Refusal) => {
    steps.push(name)
    if (broken.includes(name)) throw problem
  }
  const engine = createEngine({
    prefix: '/x',
    routes: [
      { path: '/notes/{note_id}', methods: { GET: 'read', DELETE: 'remove' } },
      { path: '/notes/{note_id}/events', methods: { GET: 'watch' }, endless: true },
    ],
    authenticate(_visit: { request: Request }, route) {
      step(`authenticate ${route?.path ?? 'nothing'}`, new ProblemError('unauthenticated'))
      return 'alice'
    },
    admit: (_visit, handler) => step(`admit ${handler}`, new ProblemError('operation_absent')),
    checkParam: (value) => (value === 'bad' ? 'is bad' : undefined),
    answer(handler, { who, params, search }) {
      step(`answer ${handler}`, new Refusal('unavailable', 'secret'))
      return jsonReply(200, JSON.stringify({ handler, who, params, search }))
    },
    refuse: (error) => toProblemError(error, 'facility'),
  })
  const handler = toHandler((request) => engine.reply({ request }))
  async function ask(method: string, path: string) {
    const response = await handler(new Request(`http://localhost${path}`, { method }))
    const text = await response.text()
    return {
      status: response.status,
      allow: response.headers.get('allow'),
      body: text === '' ? null : JSON.parse(text),
    }
  }
  return { ask, steps, handler }
}

describe('the engine', () => {
  it('hands a route what its path and query say, undecoded where it is not the engine’s to read', async () => {
    const { ask, steps } = createSubject()
    expect(await ask('GET', '/x/notes/a%2Fb?q=%20')).toEqual({
      status: 200,
      allow: null,
      body: { handler: 'read', who: 'alice', params: { note_id: 'a/b' }, search: 'q=%20' },
    })
    expect(steps).toEqual(['authenticate /notes/{note_id}', 'admit read', 'answer read'])
  })

  it.each([
    ['GET', '/y/notes/bad', 404, 'route_not_found', []],
    ['GET', `/x/${'x'.repeat(8_192)}`, 414, 'uri_too_long', []],
    ['GET', '/x/nope', 404, 'route_not_found', ['authenticate nothing']],
    ['PUT', '/x/notes/bad', 405, 'method_not_allowed', ['authenticate /notes/{note_id}']],
    ['GET', '/x/notes/bad', 422, 'invalid_path', ['authenticate /notes/{note_id}', 'admit read']],
    ['GET', '/x/notes/%ff', 422, 'invalid_path', ['authenticate /notes/{note_id}', 'admit read']],
  ])('answers %s %.20s with %i %s and goes no further', async (method, path, status, code, expected) => {
    const { ask, steps } = createSubject()
    const answer = await ask(method, path)
    expect([answer.status, answer.body.code]).toEqual([status, code])
    expect(steps).toEqual(expected)
  })

  it.each([
    ['authenticate nothing', '/x/nope', 401, 'unauthenticated'],
    ['authenticate /notes/{note_id}', '/x/notes/a', 401, 'unauthenticated'],
    ['admit read', '/x/notes/a', 501, 'operation_absent'],
    ['answer read', '/x/notes/a', 503, 'unavailable'],
  ])('ends where %s fails, at %s, without a word of what was thrown', async (broken, path, status, code) => {
    const { ask, steps } = createSubject([broken])
    const answer = await ask('GET', path)
    expect([answer.status, answer.body.code]).toEqual([status, code])
    expect(steps.at(-1)).toBe(broken)
    expect(JSON.stringify(answer.body)).not.toContain('secret')
  })

  it('answers HEAD wherever it answers GET, but begins nothing that has no end for it', async () => {
    const { ask } = createSubject()
    expect(await ask('HEAD', '/x/notes/a')).toMatchObject({ status: 200, body: null })
    expect((await ask('PATCH', '/x/notes/a')).allow).toBe('GET, HEAD, DELETE')
    expect(await ask('HEAD', '/x/notes/a/events')).toMatchObject({ status: 405, allow: 'GET' })
  })

  it.each(['__proto__', 'constructor', 'toString'])('knows no method %s', async (method) => {
    const { handler } = createSubject()
    const request = Object.defineProperty(new Request('http://localhost/x/notes/a'), 'method', { value: method })
    expect((await handler(request)).status).toBe(405)
  })

  it('returns 500 for an invalid request', async () => {
    const { handler } = createSubject()
    expect((await handler(undefined as never)).status).toBe(500)
  })
})
