/** Runs the battery over each adapter for Node; `battery-runtimes.test.ts` runs it on the others. */
import { battery } from './battery.js'
import { hosts } from './hosts.js'

for (const host of hosts) battery(host)
