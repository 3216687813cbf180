/** A short run of the fuzzer; `node test/campaign/fuzz.mjs` is the long one. */
import { expect, it } from 'vitest'
import { fuzz } from './fuzz.js'

const REQUESTS = 600
const SEED = Number(process.env.FUZZ_SEED ?? Math.floor(Math.random() * 2 ** 31))

it(`hundreds of connections with malformed requests (FUZZ_SEED=${SEED}) get clean responses and disturb no other client`, async () => {
  const { statuses, violations } = await fuzz({ seed: SEED, requests: REQUESTS })
  expect(violations).toEqual([])
  // A run that nothing lets in would try nothing.
  expect(Object.keys(statuses)).toEqual(
    expect.arrayContaining(['200', '202', '400', '401', '403', '404', '405', '422']),
  )
})
