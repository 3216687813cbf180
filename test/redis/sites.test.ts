/** The registry of sites over a shared store. */
import { describe, expect, it } from 'vitest'
import { createRedisSiteRegistry } from '../../src/redis/sites/facility.js'
import { createClock } from '../contract/clock.js'
import { notes, siteRegistryBattery } from '../contract/sites.js'
import { describeStores, planted } from './matrix.js'

describeStores('the registry of sites in Redis', (kind, place) => {
  siteRegistryBattery(kind, async (bounds) => {
    const clock = createClock()
    const sites = createRedisSiteRegistry({ ...place(), ...(bounds && { shards: 1 }), now: clock.now, ...bounds })
    return { sites, advance: clock.advance, close: async () => {} }
  })

  describe(`two nodes over ${kind}`, () => {
    it('share one registry, which another deployment does not see', async () => {
      const options = place()
      const [a, b] = [createRedisSiteRegistry(options), createRedisSiteRegistry(options)]
      const { site } = await a.put(notes)
      expect(await b.get('notes')).toEqual(site)
      await expect(b.put({ ...notes, owner: 'mallory' })).rejects.toMatchObject({ code: 'owner_mismatch' })
      expect(await createRedisSiteRegistry(place()).get('notes')).toBeNull()
      expect(await b.delete('notes')).toBe(true)
      expect(await a.get('notes')).toBeNull()
    })

    it('separate sites whose ids look like patterns and keys', async () => {
      const sites = createRedisSiteRegistry(place())
      const ids = ['*', '?', '[a-z]', 'a:b', '{x}', '}{', 'alice', 'é', 'e\u0301']
      for (const site_id of ids) await sites.put({ ...notes, site_id, title: site_id })
      for (const site_id of ids) expect((await sites.get(site_id))?.title).toBe(site_id)
      expect(await sites.delete('*')).toBe(true)
      expect((await sites.get('alice'))?.title).toBe('alice')
    })

    it('keep at most the maximum number of sites', async () => {
      const sites = createRedisSiteRegistry({ ...place(), maxSites: 1, shards: 1 })
      await sites.put(notes)
      await expect(sites.put({ ...notes, site_id: 'other' })).rejects.toMatchObject({ code: 'capacity_exceeded' })
      expect((await sites.put(notes)).created).toBe(false)
    })

    it('skip and report an invalid site', async () => {
      const options = { ...place(), shards: 1 }
      const reported: unknown[] = []
      const sites = createRedisSiteRegistry({ ...options, onError: (error) => reported.push(error) })
      await sites.put(notes)
      const key = `relayscope:{${options.deploymentId}:0}:sites:row:notes`
      const send = (...args: string[]) =>
        'call' in options.client
          ? (options.client.call as (...a: string[]) => Promise<unknown>)(...args)
          : kind === 'node-redis'
            ? (options.client.sendCommand as (a: string[]) => Promise<unknown>)(args)
            : (options.client.sendCommand as (k: string, r: boolean, a: string[]) => Promise<unknown>)(key, false, args)
      for (const value of ['', 'x', '{}\n{}', `{"owner":"a","created_at":1e300,"updated_at":0}\n{}`]) {
        planted.add(key)
        await send('SET', key, value)
        expect(await sites.get('notes')).toBeNull()
      }
      await send('DEL', key)
      await send('LPUSH', key, 'x')
      expect(await sites.get('notes')).toBeNull()
      expect(reported).toHaveLength(5)
    })
  })
})
