//! The system calls that a container may make, and their numbers on each architecture.
//!
//! Data only. What is in no list is refused; calls that depend on their arguments are in [`JUDGED`].

use rustix::thread::CapabilitySet;

/// A system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) name: &'static str,
    pub(super) x86_64: Option<u32>,
    pub(super) aarch64: Option<u32>,
    /// The number that the C library's binding has for it here, where it has one.
    #[cfg(test)]
    bound: Option<i64>,
}

/// Rows of a name and its numbers, that of x86-64 first. `both` and `x86_64` are named as the C library's
/// binding names them, which a test compares; that does not know the `unnamed` ones.
macro_rules! calls {
    (
        $(both { $($both:ident $x:literal $a:literal),* $(,)? })?
        $(x86_64 { $($one:ident $y:literal),* $(,)? })?
        $(unnamed { $($name:ident $z:literal $b:tt),* $(,)? })?
    ) => {
        &[
            $($(Call {
                name: stringify!($both),
                x86_64: Some($x),
                aarch64: Some($a),
                #[cfg(test)]
                bound: Some(libc::$both),
            },)*)?
            $($(Call {
                name: stringify!($one),
                x86_64: Some($y),
                aarch64: None,
                #[cfg(all(test, target_arch = "x86_64"))]
                bound: Some(libc::$one),
                #[cfg(all(test, not(target_arch = "x86_64")))]
                bound: None,
            },)*)?
            $($(Call {
                name: stringify!($name),
                x86_64: Some($z),
                aarch64: number!($b),
                #[cfg(test)]
                bound: None,
            },)*)?
        ]
    };
}

macro_rules! number {
    (_) => {
        None
    };
    ($number:literal) => {
        Some($number)
    };
}

/// Those that reach nothing beyond the container, whatever their arguments.
#[rustfmt::skip]
pub(super) const ALLOWED: &[Call] = calls! {
    both {
        SYS_accept 43 202, SYS_accept4 288 242, SYS_adjtimex 159 171, SYS_bind 49 200,
        SYS_brk 12 214, SYS_capget 125 90, SYS_capset 126 91, SYS_chdir 80 49,
        SYS_clock_adjtime 305 266, SYS_clock_getres 229 114, SYS_clock_gettime 228 113,
        SYS_clock_nanosleep 230 115, SYS_close 3 57, SYS_close_range 436 436, SYS_connect 42 203,
        SYS_copy_file_range 326 285, SYS_dup 32 23, SYS_dup3 292 24, SYS_epoll_create1 291 20,
        SYS_epoll_ctl 233 21, SYS_epoll_pwait 281 22, SYS_epoll_pwait2 441 441,
        SYS_eventfd2 290 19, SYS_execve 59 221, SYS_execveat 322 281, SYS_exit 60 93,
        SYS_exit_group 231 94, SYS_faccessat 269 48, SYS_faccessat2 439 439,
        SYS_fadvise64 221 223, SYS_fallocate 285 47, SYS_fanotify_mark 301 263, SYS_fchdir 81 50,
        SYS_fchmod 91 52, SYS_fchmodat 268 53, SYS_fchown 93 55, SYS_fchownat 260 54,
        SYS_fcntl 72 25, SYS_fdatasync 75 83, SYS_fgetxattr 193 10, SYS_flistxattr 196 13,
        SYS_flock 73 32, SYS_fremovexattr 199 16, SYS_fsetxattr 190 7, SYS_fstat 5 80,
        SYS_fstatfs 138 44, SYS_fsync 74 82, SYS_ftruncate 77 46, SYS_futex 202 98,
        SYS_futex_waitv 449 449, SYS_get_mempolicy 239 236, SYS_get_robust_list 274 100,
        SYS_getcpu 309 168, SYS_getcwd 79 17, SYS_getdents64 217 61, SYS_getegid 108 177,
        SYS_geteuid 107 175, SYS_getgid 104 176, SYS_getgroups 115 158, SYS_getitimer 36 102,
        SYS_getpeername 52 205, SYS_getpgid 121 155, SYS_getpid 39 172, SYS_getppid 110 173,
        SYS_getpriority 140 141, SYS_getrandom 318 278, SYS_getresgid 120 150,
        SYS_getresuid 118 148, SYS_getrusage 98 165, SYS_getsid 124 156, SYS_getsockname 51 204,
        SYS_getsockopt 55 209, SYS_gettid 186 178, SYS_gettimeofday 96 169, SYS_getuid 102 174,
        SYS_getxattr 191 8, SYS_inotify_add_watch 254 27, SYS_inotify_init1 294 26,
        SYS_inotify_rm_watch 255 28, SYS_io_cancel 210 3, SYS_io_destroy 207 1,
        SYS_io_getevents 208 4, SYS_io_setup 206 0, SYS_io_submit 209 2, SYS_ioprio_get 252 31,
        SYS_ioprio_set 251 30, SYS_kill 62 129, SYS_landlock_add_rule 445 445,
        SYS_landlock_create_ruleset 444 444, SYS_landlock_restrict_self 446 446,
        SYS_lgetxattr 192 9, SYS_linkat 265 37, SYS_listen 50 201, SYS_listxattr 194 11,
        SYS_llistxattr 195 12, SYS_lremovexattr 198 15, SYS_lseek 8 62, SYS_lsetxattr 189 6,
        SYS_madvise 28 233, SYS_mbind 237 235, SYS_membarrier 324 283, SYS_memfd_create 319 279,
        SYS_memfd_secret 447 447, SYS_mincore 27 232, SYS_mkdirat 258 34, SYS_mknodat 259 33,
        SYS_mlock 149 228, SYS_mlock2 325 284, SYS_mlockall 151 230, SYS_mmap 9 222,
        SYS_mprotect 10 226, SYS_mq_getsetattr 245 185, SYS_mq_notify 244 184,
        SYS_mq_open 240 180, SYS_mq_timedreceive 243 183, SYS_mq_timedsend 242 182,
        SYS_mq_unlink 241 181, SYS_mremap 25 216, SYS_mseal 462 462, SYS_msgctl 71 187,
        SYS_msgget 68 186, SYS_msgrcv 70 188, SYS_msgsnd 69 189, SYS_msync 26 227,
        SYS_munlock 150 229, SYS_munlockall 152 231, SYS_munmap 11 215,
        SYS_name_to_handle_at 303 264, SYS_nanosleep 35 101, SYS_newfstatat 262 79,
        SYS_openat 257 56, SYS_openat2 437 437, SYS_pidfd_getfd 438 438, SYS_pidfd_open 434 434,
        SYS_pidfd_send_signal 424 424, SYS_pipe2 293 59, SYS_pkey_alloc 330 289,
        SYS_pkey_free 331 290, SYS_pkey_mprotect 329 288, SYS_ppoll 271 73, SYS_prctl 157 167,
        SYS_pread64 17 67, SYS_preadv 295 69, SYS_preadv2 327 286, SYS_prlimit64 302 261,
        SYS_process_madvise 440 440, SYS_process_mrelease 448 448, SYS_process_vm_readv 310 270,
        SYS_process_vm_writev 311 271, SYS_pselect6 270 72, SYS_ptrace 101 117,
        SYS_pwrite64 18 68, SYS_pwritev 296 70, SYS_pwritev2 328 287, SYS_read 0 63,
        SYS_readahead 187 213, SYS_readlinkat 267 78, SYS_readv 19 65, SYS_recvfrom 45 207,
        SYS_recvmmsg 299 243, SYS_recvmsg 47 212, SYS_remap_file_pages 216 234,
        SYS_removexattr 197 14, SYS_renameat2 316 276, SYS_restart_syscall 219 128,
        SYS_rseq 334 293, SYS_rt_sigaction 13 134, SYS_rt_sigpending 127 136,
        SYS_rt_sigprocmask 14 135, SYS_rt_sigqueueinfo 129 138, SYS_rt_sigreturn 15 139,
        SYS_rt_sigsuspend 130 133, SYS_rt_sigtimedwait 128 137, SYS_rt_tgsigqueueinfo 297 240,
        SYS_sched_get_priority_max 146 125, SYS_sched_get_priority_min 147 126,
        SYS_sched_getaffinity 204 123, SYS_sched_getattr 315 275, SYS_sched_getparam 143 121,
        SYS_sched_getscheduler 145 120, SYS_sched_rr_get_interval 148 127,
        SYS_sched_setaffinity 203 122, SYS_sched_setattr 314 274, SYS_sched_setparam 142 118,
        SYS_sched_setscheduler 144 119, SYS_sched_yield 24 124, SYS_seccomp 317 277,
        SYS_semctl 66 191, SYS_semget 64 190, SYS_semop 65 193, SYS_semtimedop 220 192,
        SYS_sendfile 40 71, SYS_sendmmsg 307 269, SYS_sendmsg 46 211, SYS_sendto 44 206,
        SYS_set_mempolicy 238 237, SYS_set_mempolicy_home_node 450 450,
        SYS_set_robust_list 273 99, SYS_set_tid_address 218 96, SYS_setfsgid 123 152,
        SYS_setfsuid 122 151, SYS_setgid 106 144, SYS_setgroups 116 159, SYS_setitimer 38 103,
        SYS_setpgid 109 154, SYS_setpriority 141 140, SYS_setregid 114 143, SYS_setresgid 119 149,
        SYS_setresuid 117 147, SYS_setreuid 113 145, SYS_setsid 112 157, SYS_setsockopt 54 208,
        SYS_setuid 105 146, SYS_setxattr 188 5, SYS_shmat 30 196, SYS_shmctl 31 195,
        SYS_shmdt 67 197, SYS_shmget 29 194, SYS_shutdown 48 210, SYS_sigaltstack 131 132,
        SYS_signalfd4 289 74, SYS_splice 275 76, SYS_statfs 137 43, SYS_statx 332 291,
        SYS_symlinkat 266 36, SYS_sync 162 81, SYS_syncfs 306 267, SYS_sysinfo 99 179,
        SYS_tee 276 77, SYS_tgkill 234 131, SYS_timer_create 222 107, SYS_timer_delete 226 111,
        SYS_timer_getoverrun 225 109, SYS_timer_gettime 224 108, SYS_timer_settime 223 110,
        SYS_timerfd_create 283 85, SYS_timerfd_gettime 287 87, SYS_timerfd_settime 286 86,
        SYS_times 100 153, SYS_tkill 200 130, SYS_truncate 76 45, SYS_umask 95 166,
        SYS_uname 63 160, SYS_unlinkat 263 35, SYS_utimensat 280 88, SYS_vmsplice 278 75,
        SYS_wait4 61 260, SYS_waitid 247 95, SYS_write 1 64, SYS_writev 20 66,
    }
    x86_64 {
        SYS_access 21, SYS_alarm 37, SYS_arch_prctl 158, SYS_chmod 90, SYS_chown 92, SYS_creat 85,
        SYS_dup2 33, SYS_epoll_create 213, SYS_epoll_wait 232, SYS_eventfd 284, SYS_fork 57,
        SYS_futimesat 261, SYS_getdents 78, SYS_getpgrp 111, SYS_inotify_init 253, SYS_lchown 94,
        SYS_link 86, SYS_lstat 6, SYS_mkdir 83, SYS_mknod 133, SYS_open 2, SYS_pause 34,
        SYS_pipe 22, SYS_poll 7, SYS_readlink 89, SYS_rename 82, SYS_rmdir 84, SYS_select 23,
        SYS_signalfd 282, SYS_stat 4, SYS_symlink 88, SYS_time 201, SYS_unlink 87, SYS_utime 132,
        SYS_utimes 235, SYS_vfork 58,
    }
    unnamed {
        cachestat 451 451, fchmodat2 452 452, futex_requeue 456 456, futex_wait 455 455,
        futex_wake 454 454, getrlimit 97 163, getxattrat 464 464, io_pgetevents 333 292,
        listmount 458 458, listxattrat 465 465, lsm_get_self_attr 459 459,
        lsm_list_modules 461 461, map_shadow_stack 453 453, removexattrat 466 466,
        renameat 264 38, setrlimit 160 164, setxattrat 463 463, statmount 457 457,
        sync_file_range 277 84, uretprobe 335 _,
    }
};

/// Those that a capability governs: allowed where it is kept.
#[rustfmt::skip]
pub(super) const GOVERNED: &[(CapabilitySet, &[Call])] = &[
    (CapabilitySet::SYS_ADMIN, calls! {
        both {
            SYS_mount 165 40, SYS_umount2 166 39, SYS_pivot_root 155 41, SYS_open_tree 428 428,
            SYS_move_mount 429 429, SYS_fsopen 430 430, SYS_fsconfig 431 431, SYS_fsmount 432 432,
            SYS_fspick 433 433, SYS_mount_setattr 442 442, SYS_unshare 272 97, SYS_setns 308 268,
            SYS_bpf 321 280, SYS_perf_event_open 298 241, SYS_fanotify_init 300 262,
            SYS_lookup_dcookie 212 18, SYS_quotactl 179 60, SYS_quotactl_fd 443 443,
            SYS_sethostname 170 161, SYS_setdomainname 171 162, SYS_swapon 167 224,
            SYS_swapoff 168 225,
        }
        unnamed {
            open_tree_attr 467 467,
        }
    }),
    (CapabilitySet::DAC_READ_SEARCH, calls! {
        both {
            SYS_open_by_handle_at 304 265,
        }
    }),
    (CapabilitySet::SYS_CHROOT, calls! {
        both {
            SYS_chroot 161 51,
        }
    }),
    (CapabilitySet::SYS_MODULE, calls! {
        both {
            SYS_init_module 175 105, SYS_finit_module 313 273, SYS_delete_module 176 106,
        }
    }),
    (CapabilitySet::SYS_BOOT, calls! {
        both {
            SYS_reboot 169 142, SYS_kexec_load 246 104, SYS_kexec_file_load 320 294,
        }
    }),
    (CapabilitySet::SYS_TIME, calls! {
        both {
            SYS_settimeofday 164 170, SYS_clock_settime 227 112,
        }
    }),
    (CapabilitySet::SYS_PACCT, calls! {
        both {
            SYS_acct 163 89,
        }
    }),
    (CapabilitySet::SYSLOG, calls! {
        both {
            SYS_syslog 103 116,
        }
    }),
    (CapabilitySet::SYS_TTY_CONFIG, calls! {
        both {
            SYS_vhangup 153 58,
        }
    }),
];

/// Those whose arguments decide.
#[rustfmt::skip]
pub(super) const JUDGED: &[Call] = calls! {
    both {
        SYS_clone 56 220, SYS_clone3 435 435, SYS_ioctl 16 29, SYS_personality 135 92,
        SYS_socket 41 198, SYS_socketpair 53 199,
    }
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn all() -> Vec<Call> {
        let governed = GOVERNED.iter().flat_map(|(_, calls)| calls.iter());
        ALLOWED.iter().chain(governed).chain(JUDGED).copied().collect()
    }

    #[test]
    fn numbers_are_those_of_the_c_library_here() {
        let here = |call: &Call| {
            if cfg!(target_arch = "x86_64") { call.x86_64 } else { call.aarch64 }
        };
        let compared = all();
        let mut compared = compared.iter().filter(|call| call.bound.is_some());
        assert!(compared.clone().count() > 200);
        assert_eq!(compared.find(|call| call.bound != here(call).map(i64::from)), None);
    }

    #[test]
    fn no_number_stands_for_two_calls() {
        for number in [|call: &Call| call.x86_64, |call: &Call| call.aarch64] {
            let mut names = BTreeMap::new();
            for call in all() {
                let Some(number) = number(&call) else { continue };
                assert_eq!(names.insert(number, call.name), None, "{number}: {}", call.name);
            }
        }
    }

    /// Since Linux 5.1 a new call has one number on all architectures, and no call that is older has one so
    /// high.
    #[test]
    fn recent_calls_have_one_number_everywhere() {
        for call in all() {
            let numbers = [call.x86_64, call.aarch64];
            if numbers.iter().flatten().any(|&number| number >= 424) {
                assert_eq!(call.x86_64, call.aarch64, "{}", call.name);
            } else {
                assert!(call.x86_64.is_none_or(|number| number <= 335), "{}", call.name);
                assert!(call.aarch64.is_none_or(|number| number <= 294), "{}", call.name);
            }
        }
    }

    /// What a program of another architecture than this one starts with.
    #[test]
    fn numbers_of_the_other_architecture_are_its_own() {
        let numbers = |name: &str| {
            let all = all();
            let call = all.iter().find(|call| call.name == name).unwrap();
            (call.x86_64, call.aarch64)
        };
        for (name, x86_64, aarch64) in [
            ("SYS_read", 0, 63),
            ("SYS_execve", 59, 221),
            ("SYS_openat", 257, 56),
            ("SYS_clone", 56, 220),
            ("SYS_socket", 41, 198),
            ("SYS_mmap", 9, 222),
            ("SYS_rt_sigreturn", 15, 139),
            ("SYS_exit_group", 231, 94),
            ("SYS_mount", 165, 40),
            ("SYS_bpf", 321, 280),
        ] {
            assert_eq!(numbers(name), (Some(x86_64), Some(aarch64)), "{name}");
        }
        assert_eq!(numbers("SYS_open"), (Some(2), None));
    }
}
