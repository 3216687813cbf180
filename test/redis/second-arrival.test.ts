/** A write that a client sends twice: nothing is done twice, and the result is the first one. */
import { describe, expect, it } from 'vitest'
import { createRedisSessionRegistry } from '../../src/redis/sessions/facility.js'
import { createRedisSiteRegistry } from '../../src/redis/sites/facility.js'
import type { RedisClient } from '../../src/redis/store/client.js'
import { notes } from '../contract/sites.js'
import { describeStores } from './matrix.js'

type Send = (...args: unknown[]) => Promise<unknown>

/** `client`, with a way to let its last script arrive once more. */
function remembering(client: RedisClient) {
  const target = client as unknown as Record<string, unknown>
  const name = typeof target.call === 'function' && typeof target.status === 'string' ? 'call' : 'sendCommand'
  let last: { args: unknown[]; answer: unknown } | undefined
  const send: Send = async (...args) => {
    const answer = await (target[name] as Send).apply(client, args).catch((error: Error) => error.message)
    if (JSON.stringify(args).includes('EVAL')) last = { args, answer }
    if (typeof answer === 'string' && /^(REFUSE|NOSCRIPT)/.test(answer)) throw new Error(answer)
    return answer
  }
  const recording = new Proxy(client, {
    get(own, property) {
      if (property === name) return send
      const value = Reflect.get(own, property, own)
      return typeof value === 'function' ? value.bind(own) : value
    },
  })
  /** Returns a function that runs the last script again; it must return the same reply. */
  function again(): () => Promise<void> {
    const { args, answer } = last as { args: unknown[]; answer: unknown }
    return async () => {
      const second = await (target[name] as Send).apply(client, args).catch((error: Error) => error.message)
      expect(second).toEqual(answer)
    }
  }
  return { client: recording, again }
}

describeStores('a write that arrives a second time', (kind, place) => {
  function start(bounds: { maxSites?: number } = {}) {
    const { client, ...rest } = place()
    const { client: recording, again } = remembering(client)
    const options = { ...rest, client: recording, shards: 1 }
    const sites = createRedisSiteRegistry({ ...options, ...bounds })
    return { sites, sessions: createRedisSessionRegistry({ ...options, sites }), again }
  }

  async function opened() {
    const world = start()
    await world.sites.put(notes)
    const { session_id } = await world.sessions.open({ site_id: 'notes', owner: 'alice' })
    const second = world.again()
    return { ...world, session_id, second, state: async () => (await world.sessions.get(session_id))?.state }
  }

  describe(`over ${kind}`, () => {
    it('does not create a site again that was deleted in between', async () => {
      const { sites, again } = start()
      await sites.put(notes)
      const second = again()
      await sites.delete('notes')
      await second()
      expect(await sites.get('notes')).toBeNull()
    })

    it('does not overwrite a later declaration of a site', async () => {
      const { sites, again } = start()
      await sites.put(notes)
      const second = again()
      const { site } = await sites.put({ ...notes, title: 'Later' })
      await second()
      expect(await sites.get('notes')).toEqual(site)
    })

    it('does not delete a site that was created again in between', async () => {
      const { sites, again } = start()
      await sites.put(notes)
      await sites.delete('notes')
      const second = again()
      const { site } = await sites.put({ ...notes, owner: 'bob' })
      await second()
      expect(await sites.get('notes')).toEqual(site)
    })

    it('does not do later what it refused at first', async () => {
      const { sites, again } = start({ maxSites: 1 })
      await sites.put(notes)
      await expect(sites.put({ ...notes, site_id: 'other' })).rejects.toMatchObject({ code: 'capacity_exceeded' })
      const second = again()
      await sites.delete('notes')
      await second()
      expect(await sites.get('other')).toBeNull()
    })

    it('does not reopen a session that was closed in between', async () => {
      const { sessions, session_id, second, state } = await opened()
      await sessions.close(session_id)
      await second()
      expect(await state()).toBe('closed')
    })

    it('does not return a session to an earlier state', async () => {
      const { sessions, session_id, again, state } = await opened()
      try {
        await sessions.activate(session_id)
        const activate = again()
        await sessions.suspend(session_id)
        const suspend = again()
        await activate()
        expect(await state()).toBe('suspended')
        await sessions.activate(session_id)
        await suspend()
        expect(await state()).toBe('active')
        await sessions.close(session_id, 'done')
        const close = again()
        await close()
        await suspend()
        expect(await sessions.get(session_id)).toMatchObject({ state: 'closed', close_reason: 'done' })
      } finally {
        await sessions.disconnect()
      }
    })

    it('does not restore a removed share, and does not remove a restored one', async () => {
      const { sessions, session_id, again } = await opened()
      await sessions.share(session_id, { user_id: 'bob', rights: ['view'] })
      const share = again()
      expect(await sessions.unshare(session_id, 'bob')).toBe(true)
      const unshare = again()
      await share()
      expect(await sessions.getShare(session_id, 'bob')).toBeNull()
      await sessions.share(session_id, { user_id: 'bob', rights: ['invoke'] })
      await unshare()
      expect((await sessions.getShare(session_id, 'bob'))?.rights).toEqual(['invoke'])
    })
  })
})
