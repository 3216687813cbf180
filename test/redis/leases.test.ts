/** Leases of keys: what a deployment leaves behind ends, and what it uses does not. */
import { expect, it, onTestFinished, vi } from 'vitest'
import { createRedisSiteRegistry } from '../../src/redis/sites/facility.js'
import { createStore } from '../../src/redis/store/store.js'
import { notes } from '../contract/sites.js'
import { lossyClient } from './lossy-client.js'
import { describeStores } from './matrix.js'
import { soon } from './wait-for.js'

const DAY_MS = 86_400_000

/** Returns a function that takes the process ms further. */
function skips() {
  let skipped = 0
  const now = performance.now.bind(performance)
  vi.spyOn(performance, 'now').mockImplementation(() => now() + skipped)
  onTestFinished(() => void vi.restoreAllMocks())
  return (ms: number) => {
    skipped += ms
  }
}

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
    // One command for all keys: a client may end what waits for seconds behind thousands of others.
    const old = Array.from({ length: 3_000 }, (_, i) => store.key(0, 'old', String(i)))
    const overOld = (script: string, ...args: string[]) =>
      store.command(
        ['EVAL', `for i, key in ipairs(KEYS) do ${script}`, String(old.length), ...old, ...args],
        old[0] as string,
      )
    const fresh = await ends('sites all')
    expect(fresh % DAY_MS).toBe(0)
    expect(fresh - (await store.time())).toBeGreaterThan(30 * DAY_MS)
    // More than one page looks at: a tenth of these have no end, the others one that comes soon.
    const endOfMost = String(fresh - 20 * DAY_MS)
    await overOld(
      "redis.call('SET', key, 'x') if i % 10 ~= 0 then redis.call('PEXPIREAT', key, ARGV[1]) end end",
      endOfMost,
    )
    await set('recent', 'PXAT', String(fresh - 5 * DAY_MS))
    await set('own', 'PXAT', String(fresh - 20 * DAY_MS + 1))
    const other = createStore({ ...here, deploymentId: `${here.deploymentId}x` })
    await other.command(['SET', other.key(0, 'own'), 'x', 'PXAT', String(fresh - 20 * DAY_MS)], other.key(0, 'own'))

    const skip = skips()
    await soon(async () => {
      skip(11_000)
      await sites.put(notes)
      const first = "local at = redis.call('PEXPIRETIME', key) if at < tonumber(ARGV[1]) then return key end end"
      expect(await overOld(first, String(fresh))).toBeNull()
    })
    expect(await ends('sites all')).toBeGreaterThanOrEqual(fresh)
    expect(await Promise.all(['recent', 'own'].map(ends))).toEqual([fresh - 5 * DAY_MS, fresh - 20 * DAY_MS + 1])
    const key = other.key(0, 'own')
    expect(Number(await other.command(['PEXPIRETIME', key], key))).toBe(fresh - 20 * DAY_MS)
  })

  it('are renewed where another application has written the position', async () => {
    const here = { ...place(), shards: 1 }
    const store = createStore(here)
    const position = store.key(0, 'renewed')
    const old = store.key(0, 'old')
    const day = Math.floor((await store.time()) / DAY_MS) * DAY_MS
    const sites = createRedisSiteRegistry(here)
    const skip = skips()
    const foreign = [
      ['SET', position, 'no number'],
      ['SET', position, ''],
      ['HSET', position, 'a', '1'],
      ['DEL', position],
    ]
    for (const write of foreign) {
      await store.command(['DEL', position], position)
      await store.command(write as [string, ...string[]], position)
      await store.command(['SET', old, 'x', 'PXAT', String(day + 2 * DAY_MS)], old)
      await soon(async () => {
        skip(11_000)
        await sites.put(notes)
        expect(Number(await store.command(['PEXPIRETIME', old], old))).toBeGreaterThan(day + 30 * DAY_MS)
      })
    }
  })

  it('report no lost reply, because a later write renews again', async () => {
    const errors: unknown[] = []
    const { client: direct, ...here } = place()
    const { client, plan } = lossyClient(direct)
    const sites = createRedisSiteRegistry({ ...here, client, shards: 1, onError: (error) => errors.push(error) })
    const lost = plan.meet('lost', ([name, body]) => name === 'EVAL' && body?.includes("K('renewed')") === true)
    await sites.put(notes)
    skips()(11_000)
    await sites.put(notes)
    await lost
    await sites.put(notes)
    expect(errors).toEqual([])
  })
})
