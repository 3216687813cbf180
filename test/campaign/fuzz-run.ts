/** The fuzzer as a program: `node test/campaign/fuzz.mjs [--requests 30000] [--seed n]`. */
import { parseArgs } from 'node:util'
import { fuzz } from './fuzz.js'

const { values } = parseArgs({ options: { requests: { type: 'string' }, seed: { type: 'string' } } })
const report = await fuzz({
  requests: Number(values.requests ?? 30_000),
  seed: Number(values.seed ?? Math.floor(Math.random() * 2 ** 31)),
})
console.log(JSON.stringify(report, null, 2))
process.exit(report.violations.length > 0 ? 1 : 0)
