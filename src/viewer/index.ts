/** The face of `relayscope/viewer`: a page that shows what a diagnostics router answers. */
export type { HttpReply } from '../http/respond.js'
export { createViewer, type Viewer, type ViewerOptions } from './viewer.js'
