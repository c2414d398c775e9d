/** As much of a commit's name as people read. */
export const short = (head: string) => head.slice(0, 10)
