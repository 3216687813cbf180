/** Ids that are refused wherever an id comes in, in both compositions: with line separators, and `.` and `..`. */
import { describe, expect, it, onTestFinished } from 'vitest'
import { createDiagnosticsRouter } from '../../src/internal/diagnostics/router.js'
import { noopAuth } from '../../src/internal/http/auth.js'
import { createMemoryFacilities, memoryComposition } from '../../src/memory/index.js'
import { createRedisFacilities, redisComposition } from '../../src/redis/index.js'
import { createWorld } from '../cooperative-site/world.js'
import { clients, describeRedis, startServer } from '../redis/server.js'

// U+0085 is the third that some count as an end of line; it is a control character.
const SEPARATORS = ['\u2028', '\u2029', '\u0085']

type AllFacilities = Facilities &
  Pick<
    ReturnType<typeof createMemoryFacilities> | ReturnType<typeof createRedisFacilities>,
    'deduplicator' | 'rpc' | 'dispatcher' | 'sites' | 'sessions'
  >

type Facilities = Pick<
  ReturnType<typeof createMemoryFacilities>,
  'connections' | 'contexts' | 'browserWindows' | 'ingest'
>

/** Facilities that take ids, each call with one id replaced. */
async function refusesDots(
  facilities: AllFacilities,
  composition: Pick<Parameters<typeof createDiagnosticsRouter>[0], 'inspectors'>,
) {
  const router = createDiagnosticsRouter({ ...composition, auth: noopAuth() })
  const { connections, contexts, browserWindows, ingest, deduplicator, rpc, dispatcher, sites, sessions } = facilities
  const who = { user_id: 'u', client_id: 'c', instance_id: 'i' }
  const context = { ...who, context_id: 'x', window_id: 'w', client_type: 'console', status: 'idle' } as const
  const command = {
    user_id: 'u',
    client_id: 'c',
    command_id: 'k',
    scope_id: 's',
    action: 'a',
    payload: null,
    deadline_ms: 1_000,
  }
  const calls: [call: (given: never) => Promise<unknown>, given: object][] = [
    [connections.connect, { ...who, client_type: 'console' }],
    [contexts.report, context],
    [browserWindows.report, { user_id: 'u', client_id: 'c', window_id: 'w' }],
    [ingest, { ...who, message_id: 'm', stream: 's', kind: 'event', payload: null }],
    [deduplicator.claim, { user_id: 'u', message_id: 'm' }],
    [rpc.open, { ...who, action: 'a' }],
    [dispatcher.dispatch, command],
    [sites.put, { site_id: 'n', owner: 'u', mode: 'observe' }],
    [sessions.open, { site_id: 'n', owner: 'u' }],
  ]
  for (const id of ['.', '..']) {
    for (const [call, given] of calls)
      for (const name of Object.keys(given).filter((field) => /(_id|owner)$/.test(field)))
        await expect(
          (async () => call({ ...given, [name]: id } as never))(),
          `${name} of ${call.name || Object.keys(given)[0]}`,
        ).rejects.toMatchObject({ code: 'invalid_input', detail: `${name}: must not be "." or ".."` })
    for (const path of [
      '/connections?user_id',
      '/contexts?window_id',
      '/delivery/status?client_id=c&command_id=k&user_id',
    ]) {
      const answer = await router(new Request(`http://localhost${path}=${id}`))
      expect([path, answer.status, await answer.json()]).toMatchObject([path, 422, { code: 'invalid_query' }])
    }
  }
  expect(await (await router(new Request('http://localhost/contexts'))).json()).toMatchObject({ items: [] })
}

async function holdsIds(
  facilities: Facilities,
  composition: Pick<Parameters<typeof createDiagnosticsRouter>[0], 'inspectors'>,
) {
  const router = createDiagnosticsRouter({ ...composition, auth: noopAuth() })
  for (const separator of SEPARATORS) {
    const id = `a${separator}b`
    const who = { user_id: 'u', client_id: 'c', instance_id: 'i' }
    const invalid = expect.objectContaining({ code: expect.stringMatching(/^invalid_/) })
    for (const name of ['user_id', 'client_id', 'instance_id'])
      await expect(
        (async () => facilities.connections.connect({ ...who, client_type: 'console', [name]: id }))(),
      ).rejects.toEqual(invalid)
    const reported = { ...who, client_type: 'console', status: 'idle' } as const
    await expect((async () => facilities.contexts.report({ ...reported, context_id: id }))()).rejects.toEqual(invalid)
    const message = { ...who, message_id: 'm', stream: 's', kind: 'event', payload: null } as const
    for (const name of ['message_id', 'stream'])
      await expect((async () => facilities.ingest({ ...message, [name]: id }))()).rejects.toEqual(invalid)

    const at = encodeURIComponent(id)
    const ask = async (path: string) => {
      const answer = await router(new Request(`http://localhost${path}`))
      return [answer.status, ((await answer.json()) as { code: string }).code]
    }
    expect(await ask(`/users/${at}/summary`)).toEqual([422, 'invalid_path'])
    expect(await ask(`/connections/${at}`)).toEqual([422, 'invalid_path'])
    expect(await ask(`/connections?user_id=${at}`)).toEqual([422, 'invalid_query'])
    expect(await ask(`/history/messages?stream=${at}`)).toEqual([422, 'invalid_query'])
  }
}

describe('an id with a separator of lines or paragraphs, or of dots alone', () => {
  it('is refused in memory, in calls, paths and queries', async () => {
    const facilities = createMemoryFacilities()
    onTestFinished(async () => void (await facilities.close()))
    await holdsIds(facilities, memoryComposition(facilities))
    await refusesDots(facilities, memoryComposition(facilities))
  })

  it('is refused at the relay, in paths and bodies', async () => {
    const { ask } = await createWorld()
    for (const id of ['.', '..']) {
      const body = { message_id: id, kind: 'event', stream: 'sites/notes/events', client_id: 'laptop', payload: null }
      const message = await ask('alice', 'POST', '/messages', { body: { ...body, instance_id: 'laptop-1' } })
      expect([message.status, (await message.json()).code]).toEqual([422, 'invalid_body'])
    }
    for (const separator of SEPARATORS) {
      const id = `a${separator}b`
      const path = await ask('alice', 'GET', `/sites/${encodeURIComponent(id)}`)
      expect([path.status, (await path.json()).code]).toEqual([422, 'invalid_path'])
      const body = { message_id: id, kind: 'event', stream: 'sites/notes/events', client_id: 'laptop', payload: null }
      const message = await ask('alice', 'POST', '/messages', { body: { ...body, instance_id: 'laptop-1' } })
      expect([message.status, (await message.json()).code]).toEqual([422, 'invalid_body'])
    }
  })
})

describeRedis('an id with a separator of lines or paragraphs, or of dots alone, over the store', () => {
  it('is refused in calls, paths and queries', async () => {
    const server = await startServer()
    onTestFinished(() => server.stop())
    const { client, close } = await clients['node-redis']([server.port])
    onTestFinished(close)
    const shared = { client, deploymentId: 'd' }
    const facilities = createRedisFacilities({ ...shared, onError: null })
    onTestFinished(async () => void (await facilities.close()))
    await holdsIds(facilities, redisComposition(shared))
    await refusesDots(facilities, redisComposition(shared))
  })
})
