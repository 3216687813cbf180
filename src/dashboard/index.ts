/** The face of `relayscope/dashboard`: a page that shows what a diagnostics router answers. */
export type { HttpReply } from '../internal/http/respond.js'
export { createDashboard, type Dashboard, type DashboardLink, type DashboardOptions } from './dashboard.js'
