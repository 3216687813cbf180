/** Runs the battery over every host that is at hand; in CI a host that is not fails. */
import { battery } from './battery.js'
import { hosts } from './hosts.js'

for (const host of hosts) battery(host)
