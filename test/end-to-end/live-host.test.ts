/** Boots the live host as a newcomer does, asks everything that its page shows, breaks its clients, and ends it. */
import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type {
  BrowserWindow,
  Connection,
  Context,
  DeliveryStatus,
  PendingCall,
} from '../../src/internal/contract/index.js'
import { askAsPage, end, isAlive, type LiveHost, NPM_START, startLiveHost, until } from './live-host-process.js'

type Items<T> = { items: T[] }

let host: LiveHost
beforeAll(async () => {
  host = await startLiveHost([], NPM_START)
})
afterAll(async () => {
  await end(host, 'SIGTERM')
})

async function itemsOf<T>(path: string): Promise<T[]> {
  const { body } = await host.ask(path)
  return (body as Items<T>).items
}

async function statusOf(user_id: string, client_id: string, command_id: string): Promise<DeliveryStatus> {
  const { body } = await host.ask(`/delivery/status?${new URLSearchParams({ user_id, client_id, command_id })}`)
  return body as DeliveryStatus
}

/** The delivery records of what is assigned to a client's workers now. */
async function tasksOf(user_id: string, client_id: string): Promise<DeliveryStatus[]> {
  const contexts = await itemsOf<Context>(`/contexts?client_id=${client_id}`)
  const commands = contexts.flatMap(({ task_id }) => (task_id ? [task_id] : []))
  // A task is assigned a moment before its command is dispatched: until then there is no record.
  const records = await Promise.all(commands.map((id) => statusOf(user_id, client_id, id)))
  return records.filter(({ attempts }) => attempts !== undefined)
}

const send = (method: string, path: string, bearer: string, body?: unknown) =>
  fetch(host.url + path, {
    method,
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })

async function ticketOfPage(): Promise<string> {
  return (await askAsPage<{ ticket: string }>(host.url, '/')).ticket
}

/** Connects as a browser tab does. */
async function openTab(client_id: string, instance_id = 'life-1') {
  const hello = { client_id, instance_id, client_type: 'browser' }
  const answer = await send('POST', '/relay/connect', await ticketOfPage(), hello)
  expect(answer.status).toBe(201)
  return (await answer.json()) as { token: string; connection_id: string }
}

describe('the live host', () => {
  it('prints at most ten lines with those of npm, the address of the dashboard last, with the key in the fragment', () => {
    expect(host.printed.length).toBeLessThanOrEqual(10)
    expect(host.printed.at(-1)).toBe(`dashboard: ${host.url}/dashboard/#key=${host.key}`)
    expect(host.printed.at(-2)).toBe(`questions: ${host.url}/questions#key=${host.key}`)
  })

  it('has a tour of five steps at /questions, linked on the dashboard, without anything that needs the key', async () => {
    const page = await (await fetch(`${host.url}/questions`)).text()
    expect(page.match(/<li>/g)).toHaveLength(5)
    expect(page).toContain(`kill -STOP ${host.pids['console-3']}`)
    expect(page).not.toContain(host.key)
    expect(await (await fetch(`${host.url}/dashboard/`)).text()).toContain('href="/questions"')
    for (const headers of [{}, { 'x-admin-key': 'guess' }] as Record<string, string>[])
      expect((await fetch(`${host.url}/questions.json`, { headers })).status).toBe(403)
  })

  it('has no finding while all clients are healthy', async () => {
    await until('an ended command', async () =>
      (await itemsOf('/delivery/commands?state=resulted')).length > 3 ? true : undefined,
    )
    for (let i = 0; i < 5; i++) expect(await itemsOf('/findings')).toEqual([])
  })

  it('shows that page, which finds its router', async () => {
    const page = await fetch(`${host.url}/dashboard/`)
    expect(page.status).toBe(200)
    expect(await page.text()).toContain('data-api="../ops/diagnostics"')
  })

  it('answers every question of that page', async () => {
    const answers = await Promise.all(host.questions.map(async (path) => [path, (await host.ask(path)).status]))
    expect(answers).toEqual(host.questions.map((path) => [path, 200]))
  })

  it('shows an example request for every route except the one of a window, since none exists at the start', async () => {
    const { body } = await host.ask('/')
    const { routes } = body as { routes: { path: string; available: boolean }[] }
    expect(routes.filter(({ available }) => !available)).toEqual([])
    const paths = routes.map(({ path }) => path)
    const patternOf = (path: string) => new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`)
    const asked = host.questions.map((question) => {
      const path = question.split('?')[0] as string
      return paths.includes(path) ? path : paths.find((candidate) => patternOf(candidate).test(path))
    })
    expect(paths.filter((path) => !asked.includes(path))).toEqual(['/browser-windows/{window_id}'])
  })

  it('says nothing without the key', async () => {
    expect((await fetch(`${host.diagnostics}/capabilities`)).status).toBe(403)
  })

  it('shows its console clients as connections with actions', async () => {
    const connections = await itemsOf<Connection>('/connections?status=connected&client_type=console')
    expect(connections.map(({ client_id }) => client_id).sort()).toEqual(['console-1', 'console-2', 'console-3'])
    for (const { actions, metadata, client_id } of connections) {
      expect(actions).toEqual(['count_words', 'report_load', 'watch_load'])
      expect(metadata.pid).toBe(host.pids[client_id])
    }
  })

  it('delivers commands, has them acknowledged, and keeps the evidence', async () => {
    const done = await until('a task with an acknowledgement', async () =>
      (await tasksOf('grace', 'console-3')).find(({ acknowledgement }) => acknowledgement.state === 'acknowledged'),
    )
    expect(done.attempts.count).toBe(1)
    const ended = async () => (await statusOf('grace', 'console-3', done.command_id)).terminal?.state
    expect(await until('its end', ended)).toBe('resulted')
  })

  it('attempts again what the clumsy client lost', async () => {
    const retried = await until('a second attempt', async () =>
      (await tasksOf('ada', 'console-2')).find(({ attempts }) => attempts.count > 1),
    )
    expect(retried.recovery.count).toBeGreaterThan(0)
  })

  it('has calls pending that return', async () => {
    const call = await until('a pending call', async () => (await itemsOf<PendingCall>('/rpc/pending')).at(-1))
    await until('its return', async () =>
      (await host.ask(`/rpc/pending/${call.correlation_id}`)).status === 404 ? true : undefined,
    )
    const { terminal } = await statusOf(call.user_id, call.client_id, call.correlation_id)
    expect(terminal?.state).toBe('resulted')
  })

  it('retains what clients and calls have said', async () => {
    const streams = await until('both kinds of stream', async () => {
      const names = (await itemsOf<{ stream: string }>('/history/streams')).map(({ stream }) => stream)
      return ['/documents/', '/commands'].every((part) => names.some((name) => name.includes(part))) ? names : undefined
    })
    expect(streams.every((name) => /^users\/(ada|grace)\//.test(name))).toBe(true)
  })
})

describe('a tab on its page', () => {
  it('is a context in a window, under the identity of its ticket, until it leaves', async () => {
    const { token, connection_id } = await openTab('tab-1')
    const claim = { user_id: 'ada', status: 'active', window_id: 'window-1' }
    expect(
      (await send('PUT', '/relay/windows/window-1', token, { ...claim, focused: true, tab_count: 1 })).status,
    ).toBe(200)
    expect((await send('PUT', '/relay/contexts/tab-1', token, claim)).status).toBe(200)
    const [context] = await itemsOf<Context>('/contexts?window_id=window-1')
    expect(context).toMatchObject({ user_id: 'visitor', client_type: 'browser', status: 'active' })
    const { body } = await host.ask('/browser-windows/window-1')
    expect(body as BrowserWindow).toMatchObject({ focused: true, status: 'open', counts_source: 'contexts' })
    expect((await send('POST', '/relay/disconnect', token, {})).status).toBe(200)
    expect((await host.ask(`/connections/${connection_id}`)).body).toMatchObject({ status: 'disconnected' })
    expect((await host.ask('/contexts/tab-1')).body).toMatchObject({ status: 'closed' })
    expect((await send('POST', '/relay/heartbeat', token, {})).status).toBe(401)
  })

  it('is fenced by its newer instance', async () => {
    const older = await openTab('tab-2', 'life-1')
    const newer = await openTab('tab-2', 'life-2')
    const answer = await send('POST', '/relay/heartbeat', older.token, {})
    expect([answer.status, await answer.json()]).toEqual([409, { code: 'superseded' }])
    expect((await send('POST', '/relay/heartbeat', newer.token, {})).status).toBe(200)
  })

  it('cannot close what another client has reported', async () => {
    const { token } = await openTab('tab-3')
    expect((await send('DELETE', '/relay/contexts/console-1-prompt', token)).status).toBe(404)
    expect((await send('PUT', '/relay/contexts/console-1-prompt', token, { status: 'idle' })).status).toBe(409)
  })
})

describe('its wire', () => {
  it.each([
    ['no token', 'POST', '/relay/heartbeat', '', {}, 401, 'unknown_token'],
    ['a guessed ticket', 'POST', '/relay/connect', 'guess', {}, 401, 'unknown_ticket'],
    ['no such route', 'POST', '/relay/nothing', '', {}, 404, 'no_such_route'],
    ['a malformed segment', 'PUT', '/relay/contexts/%ff', '', {}, 400, 'invalid_path'],
    ['too large a body', 'POST', '/relay/connect', '', { pad: 'x'.repeat(65_536) }, 413, 'body_too_large'],
    ['a body that is no object', 'POST', '/relay/connect', '', [], 422, 'invalid_body'],
  ] as const)('refuses %s', async (_what, method, path, bearer, body, status, code) => {
    const answer = await send(method, path, bearer, body)
    expect([answer.status, await answer.json()]).toEqual([status, { code }])
  })

  it('does not show its page under a foreign name', async () => {
    const status = await new Promise((resolve, reject) => {
      request(host.url, { headers: { host: 'evil.test' } }, (response) => resolve(response.resume().statusCode))
        .on('error', reject)
        .end()
    })
    expect(status).toBe(403)
  })
})

describe('what its pages are handed', () => {
  /** As a browser sends it for a page: `fetch` of Node adds nothing of this. */
  async function handedOut(path: string, headers: Record<string, string>) {
    const answer = await fetch(host.url + path, { method: 'POST', headers, body: '{}' })
    return [answer.status, ((await answer.json()) as { code?: string }).code]
  }
  const numberOf = async () => {
    const { user_id } = await askAsPage<{ user_id: string }>(host.url, '/notes')
    return Number(user_id.split('-').at(-1))
  }

  it('is handed to a page of the host, which says so by its Origin or its Sec-Fetch-Site', async () => {
    const local = host.url.replace('127.0.0.1', 'localhost')
    for (const [url, headers] of [
      [host.url, { origin: host.url }],
      [local, { origin: local, 'sec-fetch-site': 'same-origin' }],
      [host.url, { 'sec-fetch-site': 'same-origin' }],
    ] as const)
      expect(await askAsPage(url, '/notes', headers)).toMatchObject({
        user_id: expect.stringMatching(/^guest-\d+$/),
        token: expect.any(String),
        session_id: 'notes-room',
      })
  })

  it.each(['/', '/notes'])('are refused to requests of other origins at %s, which change nothing', async (path) => {
    const before = await numberOf()
    // A name that is not the host's own is turned away before, by the guard that stands in front of everything.
    const foreign: [Record<string, string>, string][] = [
      [{}, 'cross_site'],
      [{ origin: 'http://evil.test' }, 'bad_origin'],
      [{ origin: 'null' }, 'bad_origin'],
      [{ origin: host.url.replace(/\d+$/, '1') }, 'bad_origin'],
      [{ origin: host.url.replace('127.0.0.1', 'localhost') }, 'cross_site'],
      [{ 'sec-fetch-site': 'cross-site' }, 'cross_site'],
      [{ 'sec-fetch-site': 'same-site' }, 'cross_site'],
      [{ 'sec-fetch-site': 'none' }, 'cross_site'],
      [{ origin: host.url, 'sec-fetch-site': 'cross-site' }, 'cross_site'],
    ]
    for (const [headers, code] of foreign)
      for (const type of ['application/json', 'text/plain'])
        expect(await handedOut(path, { 'content-type': type, ...headers })).toEqual([403, code])
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])
      expect(await handedOut(path, { 'content-type': type, origin: host.url })).toEqual([415, 'unsupported_media_type'])
    // Whatever else a page of another site can make a browser load.
    for (let i = 0; i < 3; i++) expect((await fetch(host.url + path)).status).toBe(200)
    expect(await numberOf()).toBe(before + 1)
  })
})

describe('a client that breaks', () => {
  const connected = async (client_id: string) =>
    (await itemsOf<Connection>(`/connections?client_id=${client_id}&status=connected`))[0]

  it('hangs: its commands are attempted again without acknowledgement, and it comes back as a new instance', async () => {
    const pid = host.pids['console-1'] as number
    const before = await connected('console-1')
    // Only an idle worker is given another task.
    await until('an idle worker', async () => {
      const idle = await itemsOf<Context>('/contexts?client_id=console-1&ownership=worker&status=idle')
      return idle.find(({ task_id }) => task_id === null)
    })
    process.kill(pid, 'SIGSTOP')
    const status = await until('attempts without acknowledgement', async () =>
      (await tasksOf('ada', 'console-1')).find(
        ({ attempts, acknowledgement }) => attempts.count > 1 && acknowledgement.state === 'none',
      ),
    )
    expect(status.recovery.count).toBeGreaterThan(0)
    await until('the lost heartbeat', async () => ((await connected('console-1')) ? undefined : true))
    process.kill(pid, 'SIGCONT')
    const after = await until('a new instance', () => connected('console-1'))
    expect(after.instance_id).not.toBe(before?.instance_id)
  })

  it('dies: its commands expire, its contexts turn stale, its connection loses its heartbeat', async () => {
    const pid = host.pids['console-3'] as number
    process.kill(pid, 'SIGKILL')
    const given = new Map<string, DeliveryStatus>()
    const stale = await until('stale contexts', async () => {
      for (const status of await tasksOf('grace', 'console-3')) given.set(status.command_id, status)
      const contexts = await itemsOf<Context>('/contexts?client_id=console-3&status=stale')
      return contexts.length === 3 ? contexts : undefined
    })
    expect(stale.every(({ user_id }) => user_id === 'grace')).toBe(true)
    const expired = await until('an expired command', async () => {
      for (const command_id of given.keys())
        if ((await statusOf('grace', 'console-3', command_id)).terminal?.state === 'expired') return true
      return undefined
    })
    expect(expired).toBe(true)
    const [connection] = await until('the lost heartbeat', async () => {
      const gone = await itemsOf<Connection>('/connections?client_id=console-3&status=disconnected')
      return gone.length > 0 ? gone : undefined
    })
    const events = await itemsOf<{ event: string; reason: string }>(`/connections/${connection?.connection_id}/history`)
    expect(events.at(-1)).toMatchObject({ event: 'disconnected', reason: 'heartbeat_lost' })
  })
})

describe('the end', () => {
  it('comes at once after Ctrl-C, with exit code 0 and no client left', async () => {
    expect(await end(host)).toBe(0)
    expect(Object.values(host.pids).filter(isAlive)).toEqual([])
    await expect(fetch(`${host.url}/`)).rejects.toThrow()
  })
})
