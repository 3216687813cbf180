/** Runs the battery over other versions of Node and other runtimes; in CI one that is missing fails. */
import { battery } from './battery.js'
import { runtimes } from './hosts.js'

for (const host of runtimes) battery(host)
