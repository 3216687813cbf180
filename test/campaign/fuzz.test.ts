/**
 * A short run of the fuzzer, with a seed that the text of the library decides, so that each change tries other requests
 * and a failure comes back; `node test/campaign/fuzz.mjs` is the long one, with a seed by chance.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { fuzz } from './fuzz.js'

const REQUESTS = 600
const SOURCE = join(import.meta.dirname, '../../src')

function seedOfSource(): number {
  const digest = createHash('sha256')
  const names = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
  for (const name of names.sort()) digest.update(readFileSync(join(SOURCE, name)))
  return digest.digest().readUInt32BE() >>> 1
}

const SEED = Number(process.env.FUZZ_SEED ?? seedOfSource())

it(`hundreds of connections with malformed requests (FUZZ_SEED=${SEED}) get clean responses and disturb no other client`, async () => {
  const { statuses, violations } = await fuzz({ seed: SEED, requests: REQUESTS })
  expect(violations).toEqual([])
  // A run that nothing lets in would try nothing.
  expect(Object.keys(statuses)).toEqual(
    expect.arrayContaining(['200', '202', '400', '401', '403', '404', '405', '422']),
  )
})
