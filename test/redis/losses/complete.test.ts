/** That the campaign leaves nothing out: no public call of a facility, and no script. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { ScriptText } from '../../../src/redis/store/script.js'
import { type Connected, clients, describeRedis, type Server, startServer } from '../server.js'
import { FACTORIES, SHARDS } from './act.js'
import { DELIVERY_ACTS } from './acts-delivery.js'
import { MESSAGE_ACTS } from './acts-messages.js'
import { PRESENCE_ACTS } from './acts-presence.js'
import { createCampaign } from './campaign.js'

const ACTS = [...PRESENCE_ACTS, ...MESSAGE_ACTS, ...DELIVERY_ACTS]
const REDIS = join(import.meta.dirname, '../../../src/redis')

/** Every script that any family exports, by its digest. */
async function scripts(): Promise<Map<string, string>> {
  const found = new Map<string, string>()
  for (const file of readdirSync(REDIS, { recursive: true, encoding: 'utf8' })) {
    if (!/\/(script[^/]*|sweep)\.ts$/.test(file)) continue
    const exported: Record<string, unknown> = await import(join(REDIS, file))
    for (const value of Object.values(exported))
      if (typeof value === 'object' && value !== null && 'digest' in value)
        found.set(await (value as ScriptText).digest, (value as ScriptText).name)
  }
  return found
}

describeRedis('the campaign of lost replies', () => {
  const campaign = createCampaign('node-redis')
  let server: Server
  let connected: Connected
  beforeAll(async () => {
    server = await startServer()
    connected = await clients['node-redis']([server.port])
  })
  afterAll(async () => {
    await connected?.close()
    await server?.stop()
  })

  it('has every public call of every facility', async () => {
    const calls: string[] = []
    for (const [name, make] of Object.entries(FACTORIES)) {
      const made = make({ client: connected.client, deploymentId: 'calls', shards: SHARDS } as never) as object
      for (const [method, value] of Object.entries(made))
        if (typeof value === 'function') calls.push(`${name}.${method}`)
      const { close } = made as { close?: () => unknown }
      if (close && close.length === 0) await close()
    }
    expect(new Set(ACTS.map(({ call }) => call))).toEqual(new Set(calls))
  })

  it('has every script', async () => {
    const left = await scripts()
    for (const act of ACTS) for (const { kind } of await campaign.look(act)) left.delete(kind.replace('EVALSHA ', ''))
    expect([...left.values()]).toEqual([])
  })
})
