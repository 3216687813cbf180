/** Starts the live host over a store that stays, and over none: what it leaves, and what it says. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { describeRedis, startServer } from '../redis/server.js'
import { end, startLiveHost } from './live-host-process.js'

// Every folder that the host makes is in this one.
const folder = mkdtempSync(join(tmpdir(), 'relayscope-test-'))
afterAll(() => rmSync(folder, { recursive: true }))

describeRedis('the live host over a server that stays', () => {
  it.each([
    ['leaves nothing of a deployment of its own', [], /^another$/],
    ['leaves a deployment that has a name', ['--deployment', 'kept'], /^relayscope:\{kept:0\}:shards$/m],
  ])('%s', async (_what, args, keys) => {
    const server = await startServer()
    try {
      await server.cli('SET', 'another', 'value')
      const url = `redis://127.0.0.1:${server.port}`
      expect(await end(await startLiveHost(['--redis', url, ...args]))).toBe(0)
      expect(await server.cli('KEYS', '*')).toMatch(keys)
    } finally {
      await server.stop()
    }
  })
})

describe('the live host without a store', () => {
  const fail = (redis: string, env: object = {}) =>
    new Promise((resolve) => {
      const args = ['examples/live-host/main.mjs', '--redis', redis]
      const options = { env: { ...process.env, TMPDIR: folder, ...env } }
      execFile(process.execPath, args, options, (error, _said, why) => resolve({ code: error?.code, why }))
    })

  it.each([
    ['a closed port', 'redis://:hush@127.0.0.1:1', 'at 127.0.0.1:1: connect ECONNREFUSED'],
    ['an invalid URL', 'nowhere', 'at an invalid URL'],
  ])('says what is wrong with %s, and no password', async (_what, redis, words) => {
    const why = expect.stringMatching(new RegExp(`^--redis: no Redis to use ${words}(?!.*hush)`))
    expect(await fail(redis)).toEqual({ code: 1, why })
    expect(readdirSync(folder)).toEqual([])
  })

  it('says what to install where there is no redis-server', async () => {
    const why = expect.stringMatching(/^--redis embedded starts the program redis-server, which is not on the PATH/)
    expect(await fail('embedded', { PATH: folder })).toEqual({ code: 1, why })
    expect(readdirSync(folder)).toEqual([])
  })
})
