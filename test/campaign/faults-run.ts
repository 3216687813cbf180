/** The fault campaign as a program; see `faults.mjs`. */
import { createWriteStream, readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { runFaults } from './faults.js'
import { checkHistory } from './faults-checker.js'
import { figuresOf } from './faults-figures.js'
import type { Entry } from './faults-history.js'
import { RULES } from './faults-rules.js'
import type { ClientKind } from './faults-words.js'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    nodes: { type: 'string', default: '4' },
    shards: { type: 'string', default: '1' },
    client: { type: 'string', default: 'node-redis' },
    cluster: { type: 'boolean', default: false },
    history: { type: 'string' },
    check: { type: 'string' },
  },
})

function report(found: { violations: readonly { rule: keyof typeof RULES; about: string }[] }) {
  const violations = found.violations.map(({ rule, about }) => ({ rule, is: RULES[rule], about }))
  console.log(JSON.stringify({ ...found, violations }, null, 2))
  process.exitCode = violations.length > 0 ? 1 : 0
}

const readHistory = (path: string): Entry[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Entry)

/** @param folder That of the sources. */
export async function main(folder: string): Promise<void> {
  if (values.check !== undefined) {
    const history = readHistory(values.check)
    return report({ ...{ figures: figuresOf(history) }, violations: checkHistory(history) })
  }
  if (values.client !== 'node-redis' && values.client !== 'ioredis')
    throw new Error('--client is node-redis or ioredis')
  const client: ClientKind = values.client
  const [seed, seconds, nodes, shards] = [values.seed, values.seconds, values.nodes, values.shards].map(Number)
  if (!seed || !seconds || !nodes || nodes < 2 || !shards)
    throw new Error('--seed, --seconds, --nodes (at least 2) and --shards are numbers from 1')
  const file = values.history === undefined ? undefined : createWriteStream(values.history)
  const record = (entry: Entry) => void file?.write(`${JSON.stringify(entry)}\n`)
  report(await runFaults({ seed, seconds, nodes, shards, client, cluster: values.cluster, folder, record }))
  file?.end()
}
