/** The one table of all families: what the scrape says of itself, then what it asks, source by source. */

import { COOPERATIVE_GROUPS } from './families/cooperative.js'
import { DELIVERY_GROUPS } from './families/delivery.js'
import { PRESENCE_GROUPS } from './families/presence.js'
import { TRAFFIC_GROUPS } from './families/traffic.js'
import type { MetricDescription } from './family.js'

const ofScrape = (
  name: string,
  help: string,
  more: Partial<MetricDescription> & Pick<MetricDescription, 'labels'>,
): MetricDescription => ({ name, type: 'gauge', unit: null, source: null, asked: null, help, ...more })

const bySource = { labels: ['source'] }

/** What the scrape says of itself. */
export const OWN = {
  deployment: ofScrape('relayscope_deployment', 'Which installation answers, and how it is made up.', {
    type: 'info',
    labels: ['deployment_id', 'mode', 'version'],
  }),
  up: ofScrape(
    'relayscope_source_up',
    'Whether the source answered all that this scrape asked of it, in time.',
    bySource,
  ),
  complete: ofScrape(
    'relayscope_source_complete',
    'Whether what this scrape shows of the source was read to its end; if not, its numbers are at least that.',
    bySource,
  ),
  duration: ofScrape('relayscope_source_duration_seconds', 'How long the source took to answer, or to fail.', {
    unit: 'seconds',
    ...bySource,
  }),
} as const

export const GROUPS = [...PRESENCE_GROUPS, ...TRAFFIC_GROUPS, ...DELIVERY_GROUPS, ...COOPERATIVE_GROUPS]

/** Every family there is, in the order in which they are told. */
export const METRICS: readonly MetricDescription[] = [
  ...Object.values(OWN),
  ...GROUPS.flatMap(({ families }) => families),
]
