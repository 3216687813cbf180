/** The channels of `node:diagnostics_channel`: of facilities in memory, of the router, and without subscribers. */
import { readFileSync } from 'node:fs'
import { expect, it, vi } from 'vitest'
import * as z from 'zod'
import { createActionHandlers, ingestCooperativeSiteMessage } from '../../src/cooperative-site/index.js'
import { publishCalls, publishCommands } from '../../src/internal/contract/channels.js'
import type { RpcCorrelator } from '../../src/internal/contract/rpc.js'
import { createMemoryFacilities } from '../../src/memory/index.js'
import { createWorld } from '../cooperative-site/gate-world.js'
import { createSubject, KEY, PREFIX } from '../diagnostics/subject.js'
import { channelsBattery, receive } from './channels.js'

channelsBattery('memory', () => createMemoryFacilities())

it('publishes the access record of each request of a router', async () => {
  const received = receive('relayscope:request')
  const records: unknown[] = []
  const router = createSubject({ onAccess: (record) => void records.push(record) })
  await router(new Request(`http://localhost${PREFIX}/connections?limit=2`, { headers: { 'x-admin-key': KEY } }))
  await router(new Request(`http://localhost${PREFIX}/connections`, { headers: { 'x-admin-key': 'wrong' } }))
  expect(received).toMatchObject([
    ['relayscope:request', { route: '/connections', status: 200, method: 'GET' }],
    ['relayscope:request', { principal: null, status: 403 }],
  ])
  expect(received.map(([, message]) => message)).toEqual(records)
})

it('changes nothing and makes no message without subscribers', async () => {
  const status = Promise.resolve({} as never)
  const dispatcher = { dispatch: (_input: unknown) => status }
  const published = publishCommands(dispatcher as never) as unknown as typeof dispatcher
  // The very promise of the dispatcher: nothing waits for it.
  expect(published.dispatch(null)).toBe(status)
  const opened = Promise.resolve({} as never)
  const correlator = publishCalls<RpcCorrelator>({
    open: () => opened,
    settle: async () => true,
    observe: async () => 0,
  })
  expect(correlator.open(null as never)).toBe(opened)
})

it('has no subscribers where the runtime has no channels', async () => {
  vi.resetModules()
  vi.stubGlobal('process', undefined)
  try {
    const fresh = await import('../../src/internal/contract/channels.js')
    const channel = fresh.createChannel('relayscope:test')
    expect(channel.hasSubscribers).toBe(false)
    expect(() => channel.publish({})).not.toThrow()
  } finally {
    vi.unstubAllGlobals()
    vi.resetModules()
  }
})

it('publishes what a gate, handlers and the ingest of a site do, without parameters, payloads and results', async () => {
  const received = receive(...['action', 'execute', 'ingest'].map((what) => `tracing:relayscope:${what}:asyncEnd`))
  const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  const { invoke } = createWorld({ connector: { call: async () => ({ secret: 's3cret' }) } })
  const actions = createActionHandlers()
  actions.handle('archive_note', { parameters: z.object({}) }, () => ({ secret: 's3cret' }))
  const outcome = await actions.execute({ action: 'archive_note', parameters: {}, correlation_id: 'c-1', trace })
  expect(outcome?.ok).toBe(true)
  await actions.execute({ action: 'archive_note', correlation_id: 'c-1' })
  await expect(ingestCooperativeSiteMessage({} as never, null as never)).rejects.toThrow()
  await invoke({ parameters: { secret: 's3cret' }, trace })
  const names = received.map(([name, message]) => [name.split(':')[2], message])
  expect(names).toMatchObject([
    ['execute', { action: 'archive_note', correlation_id: 'c-1', trace, ok: true }],
    ['execute', { action: 'archive_note', correlation_id: 'c-1', ok: null }],
    ['ingest', { user_id: undefined, published: null, error: { code: 'invalid_input' } }],
    [
      'action',
      {
        session_id: 's1',
        user_id: 'bob',
        action: 'archive_note',
        trace,
        status: 'succeeded',
        invocation_id: 'i1',
      },
    ],
  ])
  expect(JSON.stringify(received)).not.toContain('s3cret')
})

it('lists every channel on its page, and no other', () => {
  const names = (text: string) => new Set(text.match(/relayscope:[a-z]+\b/g))
  const source = ['src/internal/contract/channels.ts', 'src/internal/diagnostics/hooks.ts'].map((path) =>
    readFileSync(path, 'utf8'),
  )
  const page = readFileSync('docs/opentelemetry.md', 'utf8')
  expect(names(page.replaceAll('tracing:', ''))).toEqual(names(source.join()))
})
