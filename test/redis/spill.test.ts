import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { SpillStore } from '../../src/internal/contract/history.js'
import { HYDRATION_BYTES } from '../../src/internal/contract/limits.js'
import {
  createFileBucket,
  createFileSpillStore,
  createObjectSpillStore,
} from '../../src/internal/spill/object-store.js'
import { createSpilling } from '../../src/internal/spill/spilling.js'
import { createMemorySpillStore } from '../../src/memory/index.js'
import { createRedisMessageHistory } from '../../src/redis/history/facility.js'
import { createObserver, get } from './router.js'
import { clients, describeRedis, startServer } from './server.js'

const options = { signal: new AbortController().signal, maxBytes: 1_000 }

describe('a spill store in a directory', () => {
  let root: string
  let directory: string
  beforeAll(async () => {
    root = await mkdtemp(join(tmpdir(), 'relayscope-spill-'))
    directory = join(root, 'made', 'on', 'demand')
  })
  afterAll(() => rm(root, { recursive: true }))

  it('returns what was stored, until it is deleted', async () => {
    const spill = createFileSpillStore({ directory })
    expect(await spill.get('ref', options)).toBeNull()
    await spill.put('ref', '"ü\u{1f600}"')
    expect(await spill.get('ref', options)).toBe('"ü\u{1f600}"')
    await spill.put('ref', '2')
    expect(await spill.get('ref', options)).toBe('2')
    await spill.delete('ref')
    await spill.delete('ref')
    expect(await spill.get('ref', options)).toBeNull()
    expect(await readdir(directory)).toEqual([])
  })

  it('uses one file in its directory, whatever the stored reference is', async () => {
    await writeFile(join(root, 'secret.json'), '"secret"')
    const spill = createFileSpillStore({ directory })
    for (const ref of [
      '../../../secret',
      '../../../secret.json',
      '/etc/passwd',
      'a/b',
      '.',
      '..',
      'a\u0000b',
      '%2e%2e%2fsecret',
    ]) {
      expect(await spill.get(ref, options)).toBeNull()
      await spill.put(ref, '1')
      expect(await spill.get(ref, options)).toBe('1')
    }
    expect((await readdir(root)).sort()).toEqual(['made', 'secret.json'])
    await expect(spill.put('x'.repeat(300), '1')).rejects.toMatchObject({ code: 'invalid_input' })
  })

  it("refuses to read more than the reader's limit", async () => {
    const spill = createFileSpillStore({ directory })
    await spill.put('large', 'x'.repeat(1_001))
    await expect(spill.get('large', options)).rejects.toMatchObject({ code: 'payload_too_large' })
  })

  it("returns as much as the history's limit without a signal and a limit, like one in memory", async () => {
    for (const spill of [createFileSpillStore({ directory }), createMemorySpillStore()]) {
      const get = spill.get as (ref: string, options?: object) => Promise<string | null>
      await spill.put('ref', '"1"')
      expect(await get('ref')).toBe('"1"')
      expect(await get('ref', {})).toBe('"1"')
      expect(await get('none')).toBeNull()
    }
    const spill = createFileSpillStore({ directory })
    const get = spill.get as (ref: string, options?: object) => Promise<string | null>
    await spill.put('full', 'x'.repeat(HYDRATION_BYTES))
    expect(await get('full')).toHaveLength(HYDRATION_BYTES)
    await spill.put('more', 'x'.repeat(HYDRATION_BYTES + 1))
    await expect(get('more')).rejects.toMatchObject({ code: 'payload_too_large' })
  })

  it('rejects an invalid reference and a synchronous error of a client, without throwing itself', async () => {
    const fails = () => {
      throw new Error('not connected')
    }
    const broken = createObjectSpillStore({ bucket: { putObject: fails, getObject: fails, deleteObject: fails } })
    const calls = (spill: SpillStore, ref: string) => [
      () => spill.put(ref, '1'),
      () => spill.get(ref, options),
      () => spill.delete(ref),
    ]
    for (const call of calls(broken, 'ref')) await expect(call()).rejects.toThrow('not connected')
    const spill = createFileSpillStore({ directory })
    for (const call of calls(spill, Symbol('ref') as never)) await expect(call()).rejects.toThrow(TypeError)
    const get = spill.get as (ref: string, options: unknown) => Promise<string | null>
    await expect(get('ref', null)).rejects.toThrow(TypeError)
  })

  it('separates two prefixes of one bucket', async () => {
    const bucket = createFileBucket({ directory })
    const [a, b] = ['a-', 'b-'].map((prefix) => createObjectSpillStore({ bucket, prefix }))
    await a?.put('ref', '"of a"')
    expect(await b?.get('ref', options)).toBeNull()
    expect(await bucket.getObject({ key: 'a-ref', ...options })).toBe('"of a"')
  })
})

describeRedis('an observer of spilled payloads', () => {
  it('hydrates them from a directory that it shares with the nodes, and reports not_configured without one', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'relayscope-spill-'))
    const server = await startServer()
    onTestFinished(() => server.stop())
    const { client, close } = await clients['node-redis']([server.port])
    const spill = createFileSpillStore({ directory })
    const history = createRedisMessageHistory({ client, deploymentId: 'spill', spill, inlineBytes: 100 })
    const message = {
      stream: 'users/ann/log',
      kind: 'event',
      user_id: 'ann',
      client_id: 'c',
      instance_id: 'i',
    } as const
    await history.append({ ...message, message_id: 'm', payload: { text: 'x'.repeat(500) } })
    const path = '/history/messages?stream=users%2Fann%2Flog'
    const read = async (spilled: object) => {
      const { body } = await get(createObserver({ client, deploymentId: 'spill', ...spilled }), path)
      return [body.items[0].message_id, body.items[0].payload?.text?.length, body.items[0].externalized.hydration]
    }
    expect(await read({ spill })).toEqual(['m', 500, 'hydrated'])
    expect(await read({})).toEqual(['m', undefined, 'not_configured'])
    for (const name of await readdir(directory)) await rm(join(directory, name))
    expect(await read({ spill })).toEqual(['m', undefined, 'missing'])
    // A writer to the store may use any reference; it stays a file name in the directory.
    const key = 'relayscope:{spill:0}:messages:row:users%2Fann%2Flog%0Am'
    const row = await server.cli('GET', key)
    await server.cli('SET', key, row.replace(/"ref":"[^"]+"/, '"ref":"..\\/..\\/etc\\/passwd"'))
    expect(await read({ spill })).toEqual(['m', undefined, 'missing'])
    await close()
    await rm(directory, { recursive: true })
  })
})

describe('a spilled payload', () => {
  it('times out, and is deleted immediately and again if it arrives later', async () => {
    const deleted: string[] = []
    let arrive = () => {}
    let given: AbortSignal | undefined
    const spill = {
      put(_ref: string, _text: string, options?: { signal: AbortSignal }) {
        given = options?.signal
        return new Promise<void>((resolve) => {
          arrive = resolve
        })
      },
      get: () => null,
      delete: (ref: string) => void deleted.push(ref),
    }
    const { put } = createSpilling({ spill, inlineBytes: 1, spillMs: 5 })
    await expect(put('r', 'text')).rejects.toMatchObject({ name: 'Refusal', code: 'unavailable' })
    expect([given?.aborted, deleted]).toEqual([true, ['r']])
    arrive()
    await new Promise((resolve) => setImmediate(resolve))
    expect(deleted).toEqual(['r', 'r'])
  })
})
