import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { createSessionPolicy } from '../../src/cooperative-site/sessions/grants.js'
import { siteStream } from '../../src/internal/contract/ingest.js'
import { createSessionRegistry } from '../../src/memory/cooperative/sessions.js'
import { createSiteRegistry } from '../../src/memory/cooperative/sites.js'
import { badHooks, flushPromises } from '../bad-hooks.js'
import { ASK, FIRST } from '../contract/clock.js'
import { sessionRegistryBattery } from '../contract/sessions.js'
import { notes, siteRegistryBattery } from '../contract/sites.js'

const START = Date.parse('2026-01-01T00:00:00.000Z')

siteRegistryBattery('memory', async (bounds) => {
  let time = START
  return {
    sites: createSiteRegistry({ now: () => time, ...bounds }),
    advance(ms) {
      time += ms
    },
    close: async () => {},
  }
})

sessionRegistryBattery('memory', async (bounds) => {
  let time = START
  const sites = createSiteRegistry({ now: () => time })
  return {
    sites,
    sessions: createSessionRegistry({ sites, now: () => time, ...bounds }),
    advance(ms) {
      time += ms
    },
    close: async () => {},
  }
})

describe('the registries in memory', () => {
  it('keep at most maxSites sites', async () => {
    const sites = createSiteRegistry({ maxSites: 1 })
    await sites.put(notes)
    await expect(sites.put({ ...notes, site_id: 'other' })).rejects.toMatchObject({ code: 'capacity_exceeded' })
    expect((await sites.put(notes)).created).toBe(false)
  })

  it('return the last event of a site from its bus, and null without a valid time', async () => {
    const lastEvent = (topic: string) =>
      topic === siteStream('alice', 'notes') ? { at, position: { epoch: 'e', seq: 7 } } : null
    let at = '2026-01-01T00:00:00.000Z'
    const sites = createSiteRegistry({ bus: { lastEvent } })
    await sites.put(notes)
    await sites.put({ ...notes, site_id: 'other' })
    expect(await sites.inspector.getSite('notes', ASK)).toMatchObject({ last_event_at: at, last_position: 'e:7' })
    expect(await sites.inspector.getSite('other', ASK)).toMatchObject({ last_event_at: null, last_position: null })
    at = 'yesterday'
    expect(await sites.inspector.getSite('notes', ASK)).toMatchObject({ last_event_at: null, last_position: null })
  })

  it('return sites that cannot be modified', async () => {
    const names = ['add_note']
    const sites = createSiteRegistry()
    const { site } = await sites.put({ ...notes, action_names: names })
    names.push('drop_everything')
    expect(() => site.action_names.push('drop_everything')).toThrow(TypeError)
    expect((await sites.get('notes'))?.action_names).toEqual(['add_note'])
  })

  it('refuse a site record over 64 KiB', async () => {
    const many = (prefix: string) => Array.from({ length: 256 }, (_, n) => `${prefix}${n}`.padEnd(128, 'x'))
    const put = createSiteRegistry().put({ ...notes, action_names: many('a'), event_names: many('e') })
    await expect(put).rejects.toMatchObject({ code: 'payload_too_large' })
  })

  it('keep a session with a reused id, and list it once', async () => {
    let time = START
    const sessions = createSessionRegistry({ now: () => time, newId: () => 'again' })
    const list = async (filter: object = {}) => (await sessions.inspector.listSessions(filter, FIRST, ASK)).items
    await sessions.open({ site_id: 'notes', owner: 'alice', ttl_ms: 1_000 })
    await sessions.close('again')
    await sessions.open({ site_id: 'board', owner: 'bob' })
    await sessions.open({ site_id: 'board', owner: 'bob' })
    time += 7_200_000
    expect(await list()).toMatchObject([{ session_id: 'again', owner: 'bob', state: 'pending' }])
    expect(await list({ owner: 'alice' })).toEqual([])
    expect(await sessions.inspector.countSessions?.([{ owner: 'bob', site_id: 'board' }], ASK)).toEqual([1])
  })

  it('count at most as many sessions as a request may examine, and omit the others', async () => {
    const sessions = createSessionRegistry({ maxSessionsPerUser: 100 })
    for (let n = 0; n < 30; n++) await sessions.open({ site_id: n < 20 ? 'notes' : 'board', owner: 'alice' })
    const sites = ['notes', 'board', 'none'].map((site_id) => ({ owner: 'alice', site_id }))
    expect(await sessions.inspector.countSessions?.(sites, { ...ASK, limits: { examined: 25 } })).toEqual([20, null, 0])
  })

  it('apply that bound to the sessions of all users together', async () => {
    const sessions = createSessionRegistry({ maxSessions: 2, maxSessionsPerUser: 2, now: () => START })
    for (const owner of ['alice', 'bob']) await sessions.open({ site_id: 's', owner })
    const third = sessions.open({ site_id: 's', owner: 'carol' })
    await expect(third).rejects.toMatchObject({ code: 'capacity_exceeded' })
  })

  it.each(badHooks)('notify all watchers and complete the change even if one watcher %s', async (_, notify) => {
    const heard = vi.spyOn(console, 'error').mockImplementation(() => {})
    onTestFinished(() => heard.mockRestore())
    const sessions = createSessionRegistry()
    const { session_id } = await sessions.open({ site_id: 's', owner: 'alice' })
    sessions.watch?.(session_id, notify)
    let told = 0
    sessions.watch?.(session_id, () => told++)
    expect(await sessions.activate(session_id)).toMatchObject({ state: 'active' })
    expect(await sessions.share(session_id, { user_id: 'bob', rights: ['view'] })).toMatchObject({ user_id: 'bob' })
    expect(await sessions.unshare(session_id, 'bob')).toBe(true)
    expect(told).toBe(3)
    await flushPromises()
    const wrong = new Error('secret of the hook')
    // A test that ran before in this process may still be heard.
    const own = heard.mock.calls.map((call) => call.at(-1)).filter((error) => error.message === wrong.message)
    expect(own).toEqual([wrong, wrong, wrong])
  })
})

describe('the reference policy', () => {
  async function world() {
    let time = START
    const sessions = createSessionRegistry({ now: () => time })
    const policy = createSessionPolicy({ sessions })
    const session = await sessions.open({ site_id: 's', owner: 'alice' })
    const may = async (user_id: string) => {
      const check = (right: 'view' | 'invoke') => policy.check({ viewer: { user_id }, session, right })
      return [await check('view'), await check('invoke')]
    }
    return { sessions, id: session.session_id, may, advance: (ms: number) => (time += ms) }
  }

  it('allows the owner everything and a stranger nothing', async () => {
    const { may } = await world()
    expect(await may('alice')).toEqual([true, true])
    expect(await may('bob')).toEqual([false, false])
  })

  it('allows a viewer the shared rights, where invoke includes view, until they are revoked or expire', async () => {
    const { sessions, id, may, advance } = await world()
    await sessions.share(id, { user_id: 'bob', rights: ['view'] })
    await sessions.share(id, {
      user_id: 'carol',
      rights: ['invoke'],
      expires_at: new Date(START + 5).toISOString(),
    })
    expect(await may('bob')).toEqual([true, false])
    expect(await may('carol')).toEqual([true, true])
    await sessions.unshare(id, 'bob')
    advance(5)
    expect(await may('bob')).toEqual([false, false])
    expect(await may('carol')).toEqual([false, false])
  })
})
