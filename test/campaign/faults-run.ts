/** The fault campaign as a program; see `faults.mjs`. */
import { parseArgs } from 'node:util'
import { runFaults } from './faults.js'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    nodes: { type: 'string', default: '4' },
    shards: { type: 'string', default: '1' },
    client: { type: 'string', default: 'node-redis' },
    cluster: { type: 'boolean', default: false },
  },
})

/** @param folder That of the sources. */
export async function main(folder: string): Promise<void> {
  const { client, cluster } = values
  if (client !== 'node-redis' && client !== 'ioredis') throw new Error('--client is node-redis or ioredis')
  const [seed, seconds, nodes, shards] = [values.seed, values.seconds, values.nodes, values.shards].map(Number)
  if (!seed || !seconds || !nodes || nodes < 2 || !shards)
    throw new Error('--seed, --seconds, --nodes (at least 2) and --shards are numbers from 1')
  const report = await runFaults({ seed, seconds, nodes, shards, client, cluster, folder })
  console.log(JSON.stringify(report, null, 2))
  process.exitCode = report.violations.length > 0 ? 1 : 0
}
