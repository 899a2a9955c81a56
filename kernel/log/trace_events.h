/*
 * The events that the kernel records, each declared once. Included several times, each time with
 * another meaning of the macros (kernel/log/trace.h, kernel/log/trace_table.c): it has no guard.
 *
 *     TRACE_EVENT(system, name, fields, print)
 *             struct trace_NAME, TRACE_ID_NAME, and events/SYSTEM/NAME of tracefs
 *         UNSIGNED(type, linux, name)    a number; `linux`: its type in the format file
 *         SIGNED(type, linux, name)
 *         TEXT(bytes, name)              copied into the record: trace_text8(), trace_text16()
 *         STRING(name)                   a pointer to a string that lives for ever
 *
 * `print` is a format of lib/format.h and its arguments, where REC is the record; the format file
 * shows it as it stands. Events that Linux has carry Linux's names, fields and text.
 */
/* clang-format off */

/* ---- Traps ---- */

TRACE_EVENT(exceptions, page_fault_user,
            UNSIGNED(u64, "unsigned long", address)
            UNSIGNED(u64, "unsigned long", ip)
            UNSIGNED(u64, "unsigned long", error_code),
            "address=0x%lx ip=0x%lx error_code=0x%lx", REC->address, REC->ip, REC->error_code)

TRACE_EVENT(exceptions, page_fault_kernel,
            UNSIGNED(u64, "unsigned long", address)
            UNSIGNED(u64, "unsigned long", ip)
            UNSIGNED(u64, "unsigned long", error_code),
            "address=0x%lx ip=0x%lx error_code=0x%lx", REC->address, REC->ip, REC->error_code)

/* ---- The scheduler ---- */

/* prev_state: 0 wants to run, 1 sleeps, 16 is dead */
TRACE_EVENT(sched, sched_switch,
            TEXT(16, prev_comm)
            SIGNED(s32, "pid_t", prev_pid)
            SIGNED(s32, "int", prev_prio)
            SIGNED(s64, "long", prev_state)
            TEXT(16, next_comm)
            SIGNED(s32, "pid_t", next_pid)
            SIGNED(s32, "int", next_prio),
            "prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s ==> next_comm=%s next_pid=%d next_prio=%d",
            REC->prev_comm, REC->prev_pid, REC->prev_prio,
            REC->prev_state == 0 ? "R" : REC->prev_state == 16 ? "X" : "S",
            REC->next_comm, REC->next_pid, REC->next_prio)

TRACE_EVENT(sched, sched_waking,
            TEXT(16, comm)
            SIGNED(s32, "pid_t", pid)
            SIGNED(s32, "int", prio)
            SIGNED(s32, "int", target_cpu),
            "comm=%s pid=%d prio=%d target_cpu=%03d",
            REC->comm, REC->pid, REC->prio, REC->target_cpu)

/* ---- Disks (drivers/block/trace.c) ---- */

TRACE_EVENT(block, block_bio_queue,
            UNSIGNED(u32, "dev_t", dev)
            UNSIGNED(u64, "sector_t", sector)
            UNSIGNED(u32, "unsigned int", nr_sector)
            TEXT(8, rwbs)
            TEXT(16, comm),
            "%u,%u %s %lu + %u [%s]",
            REC->dev >> 20, REC->dev & 0xfffff, REC->rwbs, REC->sector, REC->nr_sector, REC->comm)

TRACE_EVENT(block, block_rq_issue,
            UNSIGNED(u32, "dev_t", dev)
            UNSIGNED(u64, "sector_t", sector)
            UNSIGNED(u32, "unsigned int", nr_sector)
            UNSIGNED(u32, "unsigned int", bytes)
            TEXT(8, rwbs)
            TEXT(16, comm),
            "%u,%u %s %u () %lu + %u none,0,0 [%s]",
            REC->dev >> 20, REC->dev & 0xfffff, REC->rwbs, REC->bytes, REC->sector, REC->nr_sector,
            REC->comm)

TRACE_EVENT(block, block_rq_complete,
            UNSIGNED(u32, "dev_t", dev)
            UNSIGNED(u64, "sector_t", sector)
            UNSIGNED(u32, "unsigned int", nr_sector)
            SIGNED(s32, "int", error)
            TEXT(8, rwbs),
            "%u,%u %s () %lu + %u none,0,0 [%d]",
            REC->dev >> 20, REC->dev & 0xfffff, REC->rwbs, REC->sector, REC->nr_sector, REC->error)

/* ---- The page cache ---- */

TRACE_EVENT(filemap, mm_filemap_add_to_page_cache,
            UNSIGNED(u64, "unsigned long", pfn)
            UNSIGNED(u64, "unsigned long", i_ino)
            UNSIGNED(u64, "unsigned long", index)
            UNSIGNED(u32, "dev_t", s_dev)
            UNSIGNED(u8, "unsigned char", order),
            "dev %u:%u ino %lx pfn=0x%lx ofs=%lu order=%u",
            REC->s_dev >> 20, REC->s_dev & 0xfffff, REC->i_ino, REC->pfn, REC->index << 12,
            REC->order)

TRACE_EVENT(filemap, mm_filemap_delete_from_page_cache,
            UNSIGNED(u64, "unsigned long", pfn)
            UNSIGNED(u64, "unsigned long", i_ino)
            UNSIGNED(u64, "unsigned long", index)
            UNSIGNED(u32, "dev_t", s_dev)
            UNSIGNED(u8, "unsigned char", order),
            "dev %u:%u ino %lx pfn=0x%lx ofs=%lu order=%u",
            REC->s_dev >> 20, REC->s_dev & 0xfffff, REC->i_ino, REC->pfn, REC->index << 12,
            REC->order)

/* ---- The life of a fault ---- */

TRACE_EVENT(faultline, fault_begin,
            UNSIGNED(u64, "unsigned long", addr)
            STRING(access)
            UNSIGNED(u32, "unsigned int", user),
            "addr=0x%lx access=%s user=%u", REC->addr, REC->access, REC->user)

/* An attempt is about this page of a file. */
TRACE_EVENT(faultline, fault_file,
            UNSIGNED(u64, "unsigned long", addr)
            UNSIGNED(u64, "unsigned long", ino)
            UNSIGNED(u64, "unsigned long", page)
            UNSIGNED(u32, "dev_t", dev)
            UNSIGNED(u32, "unsigned int", attempt),
            "addr=0x%lx dev %u:%u ino %lx page=%lu attempt=%u",
            REC->addr, REC->dev >> 20, REC->dev & 0xfffff, REC->ino, REC->page, REC->attempt)

/* About to wait for a page. locked: the lock of the address space is kept meanwhile */
TRACE_EVENT(faultline, fault_wait,
            UNSIGNED(u64, "unsigned long", addr)
            UNSIGNED(u64, "unsigned long", page)
            UNSIGNED(u32, "unsigned int", locked),
            "addr=0x%lx page=%lu locked=%u", REC->addr, REC->page, REC->locked)

TRACE_EVENT(faultline, fault_retry,
            UNSIGNED(u64, "unsigned long", addr)
            UNSIGNED(u32, "unsigned int", attempt),
            "addr=0x%lx attempt=%u", REC->addr, REC->attempt)

TRACE_EVENT(faultline, fault_end,
            UNSIGNED(u64, "unsigned long", addr)
            STRING(outcome)
            STRING(reason)
            UNSIGNED(u64, "unsigned long", waited_ns)
            UNSIGNED(u32, "unsigned int", attempts),
            "addr=0x%lx outcome=%s reason=%s attempts=%u waited_ns=%lu",
            REC->addr, REC->outcome, REC->reason, REC->attempts, REC->waited_ns)

/*
 * A window that the disk was asked for. pattern: what the policy took the access for; hit: the page that the access began
 * with; async: pages from the mark on, whose touch starts the next window
 */
TRACE_EVENT(faultline, readahead,
            STRING(pattern)
            STRING(kind)
            UNSIGNED(u64, "unsigned long", ino)
            UNSIGNED(u64, "unsigned long", start)
            UNSIGNED(u64, "unsigned long", hit)
            UNSIGNED(u32, "dev_t", dev)
            UNSIGNED(u32, "unsigned int", size)
            UNSIGNED(u32, "unsigned int", async),
            "dev %u:%u ino %lx pattern=%s kind=%s start=%lu size=%u async=%u hit=%lu",
            REC->dev >> 20, REC->dev & 0xfffff, REC->ino, REC->pattern, REC->kind, REC->start,
            REC->size, REC->async, REC->hit)

/* These pages of a file lie there on the disk, and are asked for now. */
TRACE_EVENT(faultline, file_read,
            UNSIGNED(u64, "unsigned long", ino)
            UNSIGNED(u64, "unsigned long", page)
            UNSIGNED(u64, "sector_t", sector)
            UNSIGNED(u32, "dev_t", dev)
            UNSIGNED(u32, "unsigned int", pages),
            "dev %u:%u ino %lx page=%lu pages=%u sector=%lu",
            REC->dev >> 20, REC->dev & 0xfffff, REC->ino, REC->page, REC->pages, REC->sector)

/* clang-format on */
#undef TRACE_EVENT
#undef UNSIGNED
#undef SIGNED
#undef TEXT
#undef STRING
