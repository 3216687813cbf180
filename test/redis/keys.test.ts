import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { encodePart } from '../../src/internal/contract/ids.js'
import { checkDeploymentId, crc16, keyOf, shardOf, shardPrefix } from '../../src/redis/store/keys.js'
import { parseText } from '../../src/redis/store/reply.js'
import { defineScript, runScript } from '../../src/redis/store/script.js'
import { createStore } from '../../src/redis/store/store.js'
import { clients, describeRedis, startServer } from './server.js'

describe('a key', () => {
  it('encodes every id uniquely, without separators', () => {
    const id = fc.string({ unit: 'grapheme' })
    fc.assert(
      fc.property(id, id, (a, b) => {
        expect(encodePart(a)).toMatch(/^[A-Za-z0-9_%-]*$/)
        expect(decodeURIComponent(encodePart(a))).toBe(a)
        expect(encodePart(a) === encodePart(b)).toBe(a === b)
      }),
    )
  })

  it('differs for another split of the same characters', () => {
    const prefix = shardPrefix('prod', 3)
    expect(prefix).toBe('relayscope:{prod:3}:')
    expect(keyOf(prefix, ['a', 'b:c'])).toBe('relayscope:{prod:3}:a:b%3Ac')
    expect(keyOf(prefix, ['a:b', 'c'])).not.toBe(keyOf(prefix, ['a', 'b:c']))
  })

  it('has a prefix that no other deployment shares', () => {
    for (const name of ['a', 'A-1_z', 'x'.repeat(64)]) expect(checkDeploymentId(name)).toBe(name)
    for (const name of ['', 'a:b', 'a}', 'ä', 'a\n', 'x'.repeat(65), undefined, null, 7])
      expect(() => checkDeploymentId(name as string)).toThrow(RangeError)
  })
})

describeRedis('the store and the library', () => {
  it('hash and encode the same way, in this process and in scripts', async () => {
    const server = await startServer({ args: ['--cluster-enabled', 'yes'] })
    onTestFinished(() => server.stop())
    // 0x31C3 is the check value of CRC16-XMODEM.
    expect(crc16('123456789')).toBe(0x31c3)
    for (const text of ['user-1', 'ünïcode', '\u{1f600}'])
      expect(crc16(text) % 16_384).toBe(Number(await server.cli('CLUSTER', 'KEYSLOT', text)))
    expect(shardOf('user-1', 1)).toBe(0)
  })

  it('build the same key for any id', async () => {
    const server = await startServer()
    onTestFinished(() => server.stop())
    const { client, close } = await clients.ioredis([server.port])
    const store = createStore({ client, deploymentId: 'keys', shards: 64 })
    const script = defineScript('test.key', { args: ['id', 'other'], answer: parseText }, `return K('t', id, other)`)
    const ids = ['a:b', '*', "!'()~.", '%41', '}{', 'ü', '\u{1f600}', ' ', '\\', 'a/b', '']
    for (const id of ids)
      expect(await runScript(store, script, 63, { id, other: 'x' })).toBe(store.key(63, 't', id, 'x'))
    await close()
  })
})
