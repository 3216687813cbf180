/** The routes of findings: contradictions between sources, and overdue records. */
import { type Finding, FindingFilter, FindingPage, FindingSummary, finding, helpOf } from '../views/findings/finding.js'
import { FINDING_NEEDS, listFindings, summarizeFindings } from '../views/findings/list.js'
import { complete, exampleTime, lastPage } from './examples.js'
import { diagnosticsRoute, routeSection } from './route.js'

const FINDING = finding('session_without_connector', { session_id: 'session-1', site_id: 'notes' }, null, [
  {
    source: 'sessions',
    route: '/sessions/session-1',
    fields: { state: 'active', connector_connected: false },
    observed_at: exampleTime(30),
  },
])

export const FINDING_ROUTES = routeSection('findings', 'Contradictions between sources.', [
  diagnosticsRoute({
    path: '/findings',
    operationId: 'listFindings',
    compared: ({ evidence, ...finding }: Finding) => ({
      ...finding,
      evidence: evidence.map(({ observed_at, ...seen }) => seen),
    }),
    summary: 'Contradictions between sources, and overdue records',
    requires: FINDING_NEEDS,
    operation: 'findings',
    unversioned: true,
    page: 'paged',
    query: FindingFilter,
    response: FindingPage,
    example: { ...lastPage(FINDING), completeness: complete({ sessions: 4 }), not_looked_for: [] },
    read: (inspectors, { filter, page }, view) => listFindings(inspectors, filter, page, view),
  }),
  diagnosticsRoute({
    path: '/findings/summary',
    operationId: 'getFindingSummary',
    summary: 'How many findings there are of each kind',
    requires: FINDING_NEEDS,
    operation: 'findings',
    unversioned: true,
    response: FindingSummary,
    example: {
      kinds: [
        {
          kind: FINDING.kind,
          count: 1,
          exact: true,
          oldest_since: null,
          nodes: [],
          sample: FINDING,
          help: helpOf(FINDING.kind),
        },
      ],
      observed_at: exampleTime(30),
      completeness: complete({ sessions: 4 }),
      not_looked_for: [],
    },
    read: (inspectors, _asked, view) => summarizeFindings(inspectors, view),
  }),
])
