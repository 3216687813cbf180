/** Runs the battery over other frameworks, versions of Node and runtimes; in CI one that is missing fails. */
import { battery } from './battery.js'
import { others } from './hosts.js'

for (const host of others) battery(host)
