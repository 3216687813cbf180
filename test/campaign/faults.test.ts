/** A short run of crashes, stops and cuts; `node test/campaign/faults.mjs` is the long one. */
import { expect, it } from 'vitest'
import { describeRedis } from '../redis/server.js'
import { runFaults } from './faults.js'

const SEED = Number(process.env.FAULTS_SEED ?? 1 + Math.floor(Math.random() * 2 ** 31))
const SECONDS = 6

describeRedis('crashes, stops and cuts', () => {
  it(`violate no guarantee of an answered call (FAULTS_SEED=${SEED})`, async () => {
    const folder = import.meta.dirname
    const client = SEED % 2 === 0 ? 'node-redis' : 'ioredis'
    const shards = SEED % 3 === 0 ? 4 : 1
    const { figures, violations } = await runFaults({ seed: SEED, seconds: SECONDS, nodes: 3, shards, client, folder })
    expect(violations).toEqual([])
    // A run without faults would test nothing.
    expect(Object.keys(figures)).toEqual(expect.arrayContaining(['kill', 'stop', 'cut', 'handed_over', 'heard', 'ok']))
  }, 240_000)
})
