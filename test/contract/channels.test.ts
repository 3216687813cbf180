/** The channels of `node:diagnostics_channel`: of facilities in memory, of the router, and without subscribers. */
import { readFileSync } from 'node:fs'
import { expect, it, vi } from 'vitest'
import { publishCalls, publishCommands } from '../../src/contract/channels.js'
import type { RpcCorrelator } from '../../src/contract/rpc.js'
import { createMemoryFacilities } from '../../src/memory/index.js'
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
  const correlator = publishCalls<RpcCorrelator>({ open: () => opened, settle: async () => true })
  expect(correlator.open(null as never)).toBe(opened)
})

it('has no subscribers where the runtime has no channels', async () => {
  vi.resetModules()
  vi.stubGlobal('process', undefined)
  try {
    const fresh = await import('../../src/contract/channels.js')
    const channel = fresh.createChannel('relayscope:test')
    expect(channel.hasSubscribers).toBe(false)
    expect(() => channel.publish({})).not.toThrow()
  } finally {
    vi.unstubAllGlobals()
    vi.resetModules()
  }
})

it('lists every channel on its page, and no other', () => {
  const names = (text: string) => new Set(text.match(/relayscope:(?:request|command:\w+|call:\w+)/g))
  const source = ['src/contract/channels.ts', 'src/diagnostics/hooks.ts'].map((path) => readFileSync(path, 'utf8'))
  const page = readFileSync('docs/diagnostics-channels.md', 'utf8')
  expect(names(page)).toEqual(names(source.join()))
})
