/** Leases of keys: what a deployment leaves behind ends, and what it uses does not. */
import { expect, it, onTestFinished, vi } from 'vitest'
import { createRedisSiteRegistry } from '../../src/redis/sites/facility.js'
import { createStore } from '../../src/redis/store/store.js'
import { notes } from '../contract/sites.js'
import { describeStores } from './matrix.js'
import { soon } from './wait-for.js'

const DAY_MS = 86_400_000

describeStores('leases of keys', (_kind, place) => {
  it('are renewed by every process that writes, page by page, and no other end changes', async () => {
    const here = { ...place(), shards: 1 }
    const store = createStore(here)
    const sites = createRedisSiteRegistry(here)
    await sites.put(notes)
    const ends = async (name: string) => {
      const key = store.key(0, ...name.split(' '))
      return Number(await store.command(['PEXPIRETIME', key], key))
    }
    const set = (name: string, ...end: string[]) => {
      const key = store.key(0, ...name.split(' '))
      return store.command(['SET', key, 'x', ...end], key)
    }
    const fresh = await ends('sites all')
    expect(fresh % DAY_MS).toBe(0)
    expect(fresh - (await store.time())).toBeGreaterThan(30 * DAY_MS)
    // More than one page looks at: a tenth of these have no end, the others one that comes soon.
    const names = Array.from({ length: 3_000 }, (_, i) => `old ${i}`)
    await Promise.all(names.map((name, i) => set(name, ...(i % 10 === 0 ? [] : ['PXAT', String(fresh - 20 * DAY_MS)]))))
    await set('recent', 'PXAT', String(fresh - 5 * DAY_MS))
    await set('own', 'PXAT', String(fresh - 20 * DAY_MS + 1))
    const other = createStore({ ...here, deploymentId: `${here.deploymentId}x` })
    await other.command(['SET', other.key(0, 'own'), 'x', 'PXAT', String(fresh - 20 * DAY_MS)], other.key(0, 'own'))

    let skipped = 0
    const now = performance.now.bind(performance)
    vi.spyOn(performance, 'now').mockImplementation(() => now() + skipped)
    onTestFinished(() => void vi.restoreAllMocks())
    await soon(async () => {
      skipped += 11_000
      await sites.put(notes)
      const left = (await Promise.all(names.map(ends))).filter((end) => end < fresh)
      expect(left).toEqual([])
    })
    expect(await ends('sites all')).toBeGreaterThanOrEqual(fresh)
    expect(await Promise.all(['recent', 'own'].map(ends))).toEqual([fresh - 5 * DAY_MS, fresh - 20 * DAY_MS + 1])
    const key = other.key(0, 'own')
    expect(Number(await other.command(['PEXPIRETIME', key], key))).toBe(fresh - 20 * DAY_MS)
  })
})
